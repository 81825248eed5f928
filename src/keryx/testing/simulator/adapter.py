"""A connection to the fake platform at whose calls things happen, and which sees what a gateway must not do there."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

from keryx.clock import SECOND
from keryx.domain.access import Refused
from keryx.domain.outbox import Outcome, Rejected
from keryx.gateway.dispatch import GROWING
from keryx.platforms.adapter import Outgoing, TextPiece, Update
from keryx.testing.platform import FakeAdapter, FakePlatform
from keryx.testing.simulator.loop import Process


class Stage(Protocol):
    """What the world has to say about a call to the platform."""

    breaches: list[str]

    async def before(self, process: Process, what: str) -> None:
        """Let the process die, freeze or fail before a call."""

    async def after(self, process: Process, what: str) -> None:
        """Let it die or freeze after one, before it learns what came of it."""

    def note_sender(self, process: Process, outgoing: Outgoing) -> None:
        """See that who begins to send may do so now."""


class PlacedAdapter(FakeAdapter):
    """A connection to the fake platform."""

    def __init__(self, service: FakePlatform, process: Process, world: Stage) -> None:
        super().__init__(service)
        self._process = process
        self._world = world
        self._left_alone_until: dict[str, float] = {}
        """By address, what the platform asked of this process; another one cannot know of it."""

    async def receive(self) -> AsyncGenerator[Update, None]:
        """Yield what arrives."""
        async for update in super().receive():
            await self._world.before(self._process, "receive")
            yield update

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:
        """Let the platform forget it."""
        await self._world.before(self._process, "acknowledge")
        await super().acknowledge(update, refused=refused)
        await self._world.after(self._process, "acknowledge")

    async def send(self, outgoing: Outgoing) -> Outcome:
        """Show a message."""
        self._world.note_sender(self._process, outgoing)
        self._note_hurry(outgoing)
        await self._world.before(self._process, "send")
        outcome = await super().send(outgoing)
        self._note_limit(outgoing, outcome)
        await self._world.after(self._process, "send")
        return outcome

    async def edit(self, outgoing: Outgoing, *, message_id: str) -> Outcome:
        """Change a message."""
        if is_growing(outgoing):
            self._world.note_sender(self._process, outgoing)
        self._note_hurry(outgoing)
        await self._world.before(self._process, "edit")
        outcome = await super().edit(outgoing, message_id=message_id)
        self._note_limit(outgoing, outcome)
        await self._world.after(self._process, "edit")
        return outcome

    def _note_hurry(self, outgoing: Outgoing) -> None:
        left = self._left_alone_until.get(str(outgoing.to), 0.0) - asyncio.get_running_loop().time()
        # A gateway's clock counts whole microseconds.
        if left * SECOND >= 1:
            self._world.breaches.append(
                f"{self._process.name} speaks to {outgoing.to.chat_id} {left:.1f} s before the platform wants it"
            )

    def _note_limit(self, outgoing: Outgoing, outcome: Outcome) -> None:
        if isinstance(outcome, Rejected) and outcome.retry_after is not None:
            until = asyncio.get_running_loop().time() + outcome.retry_after / SECOND
            self._left_alone_until[str(outgoing.to)] = until


def is_growing(outgoing: Outgoing) -> bool:
    """Say whether it is a preview: what is being written, and not yet what is to be said."""
    return isinstance(outgoing.piece, TextPiece) and outgoing.piece.text.endswith(GROWING)
