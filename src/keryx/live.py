"""What is being said right now, before it is stored: for whoever watches in the same process.

Nothing depends on it: the store has the same text about a second later, and the whole message in the end.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from keryx.values import dataclass

DeltaKind = Literal["text", "thinking", "call"]
WAITING_MAX = 1_000
"""Deltas kept for a watcher that is slow; one that is slower misses the oldest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of what a turn is saying; ``offset`` counts the characters of its kind since the last step.

    ``after`` is the number of the last message that the turn had read or stored by then: of what the store says, this
    comes after it. A call is one that an agent carries out itself, in a line; it lasts until anything else comes.
    """

    session_id: str
    turn_id: int
    after: int
    kind: DeltaKind
    offset: int
    text: str


class Live:
    """Hands deltas to whoever watches their session."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[asyncio.Queue[Delta]]] = {}

    def publish(self, delta: Delta) -> None:
        """Hand a delta to everybody who watches; costs nothing where nobody does."""
        for queue in self._watchers.get(delta.session_id, ()):
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(delta)

    @asynccontextmanager
    async def watch(self, session_id: str) -> AsyncIterator[asyncio.Queue[Delta]]:
        """Give the queue that receives a session's deltas from now on."""
        queue: asyncio.Queue[Delta] = asyncio.Queue(WAITING_MAX)
        watchers = self._watchers.setdefault(session_id, set())
        watchers.add(queue)
        try:
            yield queue
        finally:
            watchers.discard(queue)
            if not watchers:
                self._watchers.pop(session_id, None)
