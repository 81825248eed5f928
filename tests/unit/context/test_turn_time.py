"""The line that tells a model when a turn began: its text, and its one place in the conversation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.core.context.rules.turn_time import place_lines, time_line
from keryx.core.conversations.rules.message import Message, NewMessage, Role, text_message
from keryx.core.values.turn_states import TurnId

NEW_YEAR = 1_767_225_600_000_000
"""2026-01-01 00:00 UTC."""


@pytest.mark.parametrize(
    ("zone", "line"),
    [
        ("UTC", "[Thursday, 2026-01-01 00:00 UTC, UTC+0000]"),
        ("America/Toronto", "[Wednesday, 2025-12-31 19:00 America/Toronto, UTC-0500]"),
        ("Mars/Olympus", "[Thursday, 2026-01-01 00:00 UTC, UTC+0000]"),
    ],
)
def test_the_line_has_the_day_the_time_and_the_zone(zone: str, line: str) -> None:
    assert time_line(NEW_YEAR, zone) == line


def message(seq: int, role: Role, turn_id: int) -> Message:
    return Message(seq, "s", 0, seq, role, '"said"', None, None, TurnId(turn_id), 0, 0, 0, 0, 0, None, 0)


def lines(*turns: int) -> dict[TurnId, str]:
    return {TurnId(each): f"[{each}]" for each in turns}


def test_a_turn_has_its_line_at_the_first_message_it_answers() -> None:
    spoken = [message(1, "user", 1), message(2, "assistant", 1), message(3, "user", 2), message(4, "user", 2)]
    assert place_lines(spoken, lines(1, 2), turn_id=TurnId(2)) == {0: "[1]", 2: "[2]"}


def test_a_turn_that_repeats_an_old_message_has_its_own_line_before_its_answer() -> None:
    asked = [message(1, "user", 1)]
    assert place_lines(asked, lines(1, 2), turn_id=TurnId(2)) == {0: "[1]", 1: "[2]"}
    answered = [*asked, message(2, "assistant", 2), message(3, "user", 3)]
    assert place_lines(answered, lines(1, 2, 3), turn_id=TurnId(3)) == {0: "[1]", 1: "[2]", 2: "[3]"}


def test_results_that_an_earlier_turn_left_open_do_not_move_the_line() -> None:
    before = [message(1, "user", 1), message(2, "assistant", 1), message(3, "tool", 2)]
    assert place_lines(before, lines(1, 2), turn_id=TurnId(2)) == {0: "[1]", 3: "[2]"}
    after: list[Message | NewMessage] = [*before, text_message("assistant", "done")]
    assert place_lines(after, lines(1, 2), turn_id=TurnId(2)) == {0: "[1]", 3: "[2]"}


def test_a_turn_without_a_recorded_zone_has_no_line() -> None:
    assert place_lines([message(1, "user", 1)], {}, turn_id=TurnId(1)) == {}


turns = st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.booleans()), min_size=1, max_size=6)


@given(turns)
def test_what_was_told_once_keeps_its_place_in_every_later_prompt(plan: list[tuple[bool, int, bool]]) -> None:
    spoken: list[Message] = []
    told: dict[int, str] = {}
    for number, (has_question, calls, answers) in enumerate(plan, start=1):
        known = lines(*range(1, number + 1))
        if has_question:
            spoken.append(message(len(spoken) + 1, "user", number))
        for _ in range(calls + 1):
            placed = place_lines(spoken, known, turn_id=TurnId(number))
            assert told.items() <= placed.items()
            assert len(placed) == len({*told} | {*placed})
            if not answers:
                break
            told = placed
            spoken.append(message(len(spoken) + 1, "assistant", number))


def test_messages_that_are_not_stored_belong_to_the_running_turn() -> None:
    spoken: list[Message | NewMessage] = [message(1, "user", 1), text_message("assistant", "hm")]
    assert place_lines(spoken, lines(1), turn_id=TurnId(1)) == {0: "[1]"}
