"""Pair each tool call with its result: providers refuse a call without a result, and a result without a call.

Pure: stored messages do not change. A result may stand anywhere behind its call, or may be missing.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Final

from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import Message, NewMessage, ToolCallPart, ToolResultPart
from keryx.values import dataclass

NO_RESULT: Final = "No result was kept."


@dataclass(slots=True)
class CallPair:
    """One call and its result, under an id that is unique in the conversation."""

    call: ToolCallPart
    call_id: str
    result: ToolResultPart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """The calls of a conversation, and the results without a call in it, by the index of their message."""

    pairs: dict[int, list[CallPair]]
    orphan_results: dict[int, list[ToolResultPart]]


def pair_calls(
    spoken: Sequence[Message | NewMessage | Cover], *, spelled: Callable[[str], str] = str
) -> Paired:
    """Return each call with its result behind it; ``spelled`` converts an id to the spelling of the provider."""
    paired = Paired(pairs=defaultdict(list), orphan_results=defaultdict(list))
    waiting: dict[str, deque[CallPair]] = defaultdict(deque)
    taken: set[str] = set()
    for number, each in enumerate(spoken):
        if isinstance(each, Cover):
            continue
        for part in each.parts:
            if isinstance(part, ToolCallPart) and each.role == "assistant":
                pair = CallPair(call=part, call_id=_own_id(spelled(part.call_id), taken))
                paired.pairs[number].append(pair)
                waiting[part.call_id].append(pair)
            elif isinstance(part, ToolResultPart):
                if waiting[part.call_id]:
                    waiting[part.call_id].popleft().result = part
                else:
                    paired.orphan_results[number].append(part)
    return paired


def orphan_result_text(result: ToolResultPart, output: str) -> str:
    """Return the text for a result whose call is not shown, for example because a summary covers the call."""
    return f"Keryx reports the result of an earlier call of {result.name}:\n{output}"


def _own_id(call_id: str, taken: set[str]) -> str:
    """Return the id, or a similar id that no earlier call has."""
    wanted = call_id or "call"
    own, number = wanted, 1
    while own in taken:
        number += 1
        own = f"{wanted}_{number}"
    taken.add(own)
    return own
