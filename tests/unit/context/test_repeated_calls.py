"""A model that goes in circles: three identical calls with identical results are noted, five end the turn."""

from collections.abc import Iterator
from itertools import count

import pytest

from keryx.core.context.rules.call_pairs import pair_calls
from keryx.core.context.rules.repeated_calls import circling_reason, repeat_notes
from keryx.core.conversations.rules.message import (
    JsonValue,
    Message,
    NewMessage,
    ToolCallPart,
    ToolResultPart,
    encode_parts,
)
from keryx.core.values.turn_states import TurnId

NOW = TurnId(7)


def calls(*made: tuple[JsonValue, JsonValue], start: int = 1) -> list[NewMessage]:
    """Return calls of ``look``, each with its result."""

    def messages() -> Iterator[NewMessage]:
        for number, (arguments, output) in zip(count(start), made, strict=False):
            call = ToolCallPart(call_id=f"c{number}", name="look", arguments=arguments)
            yield NewMessage(role="assistant", parts=(call,))
            result = ToolResultPart(call_id=call.call_id, name="look", output=output)
            yield NewMessage(role="tool", parts=(result,))

    return list(messages())


def noted(spoken: list[NewMessage] | list[Message]) -> list[str]:
    return list(repeat_notes(spoken, pair_calls(spoken), turn_id=NOW))


SAME: tuple[JsonValue, JsonValue] = ({"at": "a", "in": "b"}, ["x"])
TURNED: tuple[JsonValue, JsonValue] = ({"in": "b", "at": "a"}, ["x"])


def test_from_the_third_on_each_repetition_is_noted() -> None:
    spoken = calls(SAME, SAME, TURNED, SAME)
    assert noted(spoken) == ["c3", "c4"]
    notes = repeat_notes(spoken, pair_calls(spoken), turn_id=NOW)
    assert "3 times with the same result" in notes["c3"]
    assert "4 times" in notes["c4"]


@pytest.mark.parametrize(
    "made",
    [
        [SAME, SAME, ({"at": "b"}, ["x"])],
        [SAME, SAME, ({"at": "a", "in": "b"}, ["y"])],
        [(str(number), "x") for number in range(9)],
    ],
    ids=["other arguments", "another result", "all different"],
)
def test_other_calls_and_other_results_are_no_repetition(made: list[tuple[JsonValue, JsonValue]]) -> None:
    assert noted(calls(*made)) == []
    assert circling_reason(calls(*made)) is None


def test_calls_in_between_do_not_hide_a_circle() -> None:
    spoken = calls(*[SAME, ("b", "c")] * 5)
    assert noted(spoken) == ["c5", "c6", "c7", "c8", "c9", "c10"]
    assert circling_reason(spoken) is not None


def test_the_fifth_ends_the_turn_with_a_reason_in_words() -> None:
    assert circling_reason(calls(*[SAME] * 4)) is None
    assert circling_reason(calls(*[SAME] * 5)) == (
        "it went in circles: it called look 5 times in the same way, with the same result. Say more exactly what you "
        "need, or choose another model with /model."
    )


def test_a_call_without_a_result_does_not_count() -> None:
    spoken = [each for each in calls(*[SAME] * 9) if each.role == "assistant"]
    assert circling_reason(spoken) is None
    assert noted(spoken) == []


def test_each_turn_counts_for_itself() -> None:
    spoken = [
        Message(
            no,
            "s",
            0,
            no,
            each.role,
            encode_parts(each.parts),
            None,
            None,
            TurnId(turn),
            0,
            0,
            0,
            0,
            0,
            None,
            0,
        )
        for turn in (1, 2)
        for no, each in enumerate(calls(*[SAME] * 2, start=10 * turn), start=10 * turn)
    ]
    assert noted(spoken) == []
