"""Notice a model that goes in circles: the same call with the same result, again and again in one turn. Pure.

The count follows from the stored messages. So a later prompt repeats what the model read, and a turn that goes on after
a crash counts on.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from json import dumps
from typing import Final

from keryx.core.context.rules.call_pairs import CallPair, Paired, pair_calls
from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import Message, NewMessage
from keryx.core.values.turn_states import TurnId

NOTED: Final = 3
"""From this call on, the model is told in the result that it repeats itself."""
REPEATS_MAX: Final = 5
"""With this call the turn ends."""

NOTE: Final = (
    "Keryx notes: this turn has made this call {times} times with the same result. Another one will change nothing: "
    "do something else, or answer with what you know."
)
CIRCLES: Final = (
    "it went in circles: it called {name} {times} times in the same way, with the same result. Say more exactly what "
    "you need, or choose another model with /model."
)


def repeat_notes(
    spoken: Sequence[Message | NewMessage | Cover], paired: Paired, *, turn_id: TurnId | None
) -> Mapping[str, str]:
    """Return the notes for the results of repeated calls, by the ids of the calls in ``paired``."""
    seen: Counter[tuple[TurnId | None, str]] = Counter()
    notes: dict[str, str] = {}
    for number, each in enumerate(spoken):
        owner = each.turn_id if isinstance(each, Message) else turn_id
        for pair in paired.pairs.get(number, ()):
            key = (owner, _identity(pair))
            seen[key] += pair.result is not None
            if seen[key] >= NOTED:
                notes[pair.call_id] = NOTE.format(times=seen[key])
    return notes


def circling_reason(spoken: Sequence[Message | NewMessage]) -> str | None:
    """Return why a turn with these messages must end; None while it may go on."""
    pairs = [pair for pairs in pair_calls(spoken).pairs.values() for pair in pairs]
    seen = Counter(_identity(pair) for pair in pairs if pair.result is not None)
    for pair in pairs:
        times = seen[_identity(pair)]
        if times >= REPEATS_MAX:
            return CIRCLES.format(name=pair.call.name, times=times)
    return None


def _identity(pair: CallPair) -> str:
    """Return a text that is equal for equal calls with equal results."""
    result = pair.result
    outcome = None if result is None else (result.output, result.is_error)
    return dumps((pair.call.name, pair.call.arguments, outcome), sort_keys=True)
