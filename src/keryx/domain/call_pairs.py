"""Each call with the one result it got: every provider refuses a call without one, and a result without a call.

Pure: what is stored stays as it is. Results may stand anywhere behind their calls, and may be missing.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Final

from keryx.domain.cover import Cover
from keryx.domain.message import Message, NewMessage, ToolCallPart, ToolResultPart
from keryx.values import dataclass

NO_RESULT: Final = "No result was kept."


@dataclass(slots=True)
class CallPair:
    """One call and the result it got, under an id that no other call of the conversation has."""

    call: ToolCallPart
    call_id: str
    result: ToolResultPart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """The calls of a conversation, and the results whose calls are not in it, by the place of their message."""

    pairs: dict[int, list[CallPair]]
    strays: dict[int, list[ToolResultPart]]


def pair_calls(
    spoken: Sequence[Message | NewMessage | Cover], *, spelled: Callable[[str], str] = str
) -> Paired:
    """Find each call's result, wherever it stands behind it; ``spelled`` is how an id may be written."""
    paired = Paired(pairs=defaultdict(list), strays=defaultdict(list))
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
                    paired.strays[number].append(part)
    return paired


def told_stray(result: ToolResultPart, output: str) -> str:
    """Return how a result is told whose call is not shown, for example because a summary stands for it."""
    return f"Keryx reports the result of an earlier call of {result.name}:\n{output}"


def _own_id(call_id: str, taken: set[str]) -> str:
    """Return the id, or one like it that no call before it has."""
    wanted = call_id or "call"
    own, number = wanted, 1
    while own in taken:
        number += 1
        own = f"{wanted}_{number}"
    taken.add(own)
    return own
