"""What the built-in guide answered is not part of what a model reads."""

from keryx.core.context.rules.guide_turns import GUIDE, without_guide
from keryx.core.conversations.rules.message import (
    Message,
    Part,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    encode_parts,
)
from keryx.core.values.turn_states import TurnId

CALL = ToolCallPart(call_id="c", name="list_sessions", arguments={})
RESULT = ToolResultPart(call_id="c", name="list_sessions", output=[])


def message(seq: int, role: Role, part: Part | str, *, by: str | None = None, turn: int = 1) -> Message:
    parts = (TextPart(text=part) if isinstance(part, str) else part,)
    return Message(
        seq, "s", 0, seq, role, encode_parts(parts), None, None, TurnId(turn), 0, 0, 0, 0, 0, by, 0
    )


def seqs(*spoken: Message) -> list[int]:
    return [each.seq for each in without_guide(spoken) if isinstance(each, Message)]


def test_its_answers_calls_and_questions_are_left_out() -> None:
    assert seqs(
        message(1, "user", "hello"),
        message(2, "assistant", "No model answers here.", by=GUIDE),
        message(3, "user", "which sessions are there?"),
        message(4, "assistant", CALL, by=GUIDE),
        message(5, "tool", RESULT),
        message(6, "assistant", "none", by=GUIDE),
        message(7, "user", "and now?"),
    ) == [7]


def test_a_model_s_turns_before_and_after_stay() -> None:
    assert seqs(
        message(1, "user", "look"),
        message(2, "assistant", CALL, by="tool_calls"),
        message(3, "tool", RESULT),
        message(4, "user", "hello"),
        message(5, "assistant", "No model answers here.", by=GUIDE),
        message(6, "user", "and now?"),
        message(7, "assistant", "yes", by="stop"),
    ) == [1, 2, 3, 6, 7]


def test_a_call_of_the_guide_that_still_runs_keeps_its_question() -> None:
    assert seqs(
        message(1, "user", "remember this"),
        message(2, "assistant", CALL, by=GUIDE),
        message(3, "tool", RESULT),
    ) == [1, 2, 3]


def test_a_question_that_a_model_answers_instead_stays() -> None:
    assert seqs(message(1, "user", "hello"), message(2, "assistant", "Hi", by="stop", turn=2)) == [1, 2]
