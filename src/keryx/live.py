"""The text of running turns before it is stored, for watchers in the same process.

Nothing depends on it. The store has the same text about a second later, and the whole message at the end.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from keryx.values import dataclass

DeltaKind = Literal["text", "thinking", "call"]
WAITING_MAX = 1_000
"""Deltas kept for a slow watcher; beyond this number the watcher misses the oldest deltas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of a turn's text; ``offset`` counts the characters of this kind since the last step.

    ``after`` is the number of the last message that the turn had read or stored: the delta follows this message. A
    delta of kind ``call`` is one line about a call that the agent carries out itself; show it until the next delta.
    """

    session_id: str
    turn_id: int
    after: int
    kind: DeltaKind
    offset: int
    text: str


class Live:
    """Hands deltas to the watchers of their session."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[asyncio.Queue[Delta]]] = {}

    def publish(self, delta: Delta) -> None:
        """Hand a delta to all watchers of its session; without watchers, do nothing."""
        for queue in self._watchers.get(delta.session_id, ()):
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(delta)

    @asynccontextmanager
    async def watch(self, session_id: str) -> AsyncIterator[asyncio.Queue[Delta]]:
        """Yield a queue that receives the session's deltas from now on."""
        queue: asyncio.Queue[Delta] = asyncio.Queue(WAITING_MAX)
        watchers = self._watchers.setdefault(session_id, set())
        watchers.add(queue)
        try:
            yield queue
        finally:
            watchers.discard(queue)
            if not watchers:
                self._watchers.pop(session_id, None)
