"""What the built-in guide answered is not part of what a model reads. Pure.

A model would take the guide's words for its own. People and search still see them.
"""

from collections.abc import Sequence
from typing import Final

from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import Message

GUIDE: Final = "guide"
"""The finish reason of the guide's messages."""
GREETING: Final = "No model answers here"
"""The beginning of an answer that says how to set a model up."""


def without_guide(messages: Sequence[Message | Cover]) -> list[Message | Cover]:
    """Return the conversation without the guide's answers, its calls, and the questions that it answered.

    An exchange that the guide has not finished stays: whatever goes on with it needs the question and the calls.
    """
    kept: list[Message | Cover] = []
    begin = 0
    """Where the messages begin that the next answer answers."""
    for each in messages:
        if is_guide_answer(each):
            del kept[begin:]
            continue
        # A model's results follow its calls.
        ends = isinstance(each, Cover) or (each.role == "tool" and begin == len(kept))
        kept.append(each)
        if ends or (isinstance(each, Message) and each.role == "assistant" and each.finish_reason != GUIDE):
            begin = len(kept)
    return kept


def is_guide_answer(each: Message | Cover) -> bool:
    """Return whether this is an answer of the guide, and not only a call."""
    return isinstance(each, Message) and each.finish_reason == GUIDE and not each.tool_calls


def has_explained(messages: Sequence[Message | Cover]) -> bool:
    """Return whether the guide has said here how to set a model up."""
    return any(
        isinstance(each, Message) and is_guide_answer(each) and each.text.startswith(GREETING)
        for each in messages
    )
