"""A connection to the fake platform whose calls are places for faults, and which checks the gateway's conduct."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

from keryx.clock import SECOND
from keryx.core.deliveries.rules.delivery import Outcome, Rejected
from keryx.core.deliveries.rules.pieces import TextPiece
from keryx.core.people.rules.access import Refused
from keryx.gateway.deliveries import GROWING
from keryx.platforms.adapter import Outgoing, Update
from keryx.testing.platform import FakeAdapter, FakePlatform
from keryx.testing.simulator.loop import Process


class FaultHooks(Protocol):
    """The world's hooks around a call to the platform."""

    breaches: list[str]

    async def before(self, process: Process, what: str) -> None:
        """Let the process die, freeze or fail before a call, if the plan says so."""

    async def after(self, process: Process, what: str) -> None:
        """Let the process die or freeze after a call, before it learns the outcome."""

    def note_sender(self, process: Process, outgoing: Outgoing) -> None:
        """Check that the process may send now."""


class PlacedAdapter(FakeAdapter):
    """A connection to the fake platform with places for faults."""

    def __init__(self, service: FakePlatform, process: Process, world: FaultHooks) -> None:
        super().__init__(service)
        self._process = process
        self._world = world
        self._left_alone_until: dict[str, float] = {}
        """By address, the end of the rate limit that this process knows of; another process cannot know it."""

    async def receive(self) -> AsyncGenerator[Update, None]:
        """Yield the incoming updates."""
        async for update in super().receive():
            await self._world.before(self._process, "receive")
            yield update

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:
        """Acknowledge an update."""
        await self._world.before(self._process, "acknowledge")
        await super().acknowledge(update, refused=refused)
        await self._world.after(self._process, "acknowledge")

    async def send(self, outgoing: Outgoing) -> Outcome:
        """Send a message."""
        self._world.note_sender(self._process, outgoing)
        self._note_hurry(outgoing)
        await self._world.before(self._process, "send")
        outcome = await super().send(outgoing)
        self._note_limit(outgoing, outcome)
        await self._world.after(self._process, "send")
        return outcome

    async def edit(self, outgoing: Outgoing, *, message_id: str) -> Outcome:
        """Edit a message."""
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
        # A gateway's clock has a resolution of one microsecond.
        if left * SECOND >= 1:
            self._world.breaches.append(
                f"{self._process.name} sends to {outgoing.to.chat_id} {left:.1f} s before the rate limit ends"
            )

    def _note_limit(self, outgoing: Outgoing, outcome: Outcome) -> None:
        if isinstance(outcome, Rejected) and outcome.retry_after is not None:
            until = asyncio.get_running_loop().time() + outcome.retry_after / SECOND
            self._left_alone_until[str(outgoing.to)] = until


def is_growing(outgoing: Outgoing) -> bool:
    """Return whether the message is a preview: the text of an unfinished turn."""
    return isinstance(outgoing.piece, TextPiece) and outgoing.piece.text.endswith(GROWING)
