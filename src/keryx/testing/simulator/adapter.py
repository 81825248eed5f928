"""A connection to the fake platform whose calls may fail, and which checks that the gateway obeys the platform."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

from keryx.clock import SECOND
from keryx.core.deliveries.rules.delivery import Outcome, Rejected
from keryx.core.deliveries.rules.pieces import TextPiece
from keryx.core.people.rules.access import Refused
from keryx.gateway.deliveries import PREVIEW_SUFFIX
from keryx.platforms.adapter import Outgoing, Update
from keryx.testing.platform import FakeAdapter, FakePlatform
from keryx.testing.simulator.loop import Process


class PlatformHooks(Protocol):
    """The world's hooks around a call to the platform."""

    breaches: list[str]

    async def before(self, process: Process, what: str) -> None:
        """Let the process die, freeze or fail before a call, if the plan says so."""

    async def after(self, process: Process, what: str) -> None:
        """Let the process die or freeze after a call, before it learns the outcome."""

    def check_sender(self, process: Process, outgoing: Outgoing) -> None:
        """Check that the process may send now."""


class SimulatedAdapter(FakeAdapter):
    """A connection to the fake platform with a fault point before and after each call."""

    def __init__(self, service: FakePlatform, process: Process, world: PlatformHooks) -> None:
        super().__init__(service)
        self._process = process
        self._world = world
        self._limited_until: dict[str, float] = {}
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
        self._world.check_sender(self._process, outgoing)
        self._check_rate_limit(outgoing)
        await self._world.before(self._process, "send")
        outcome = await super().send(outgoing)
        self._note_limit(outgoing, outcome)
        await self._world.after(self._process, "send")
        return outcome

    async def edit(self, outgoing: Outgoing, *, message_id: str) -> Outcome:
        """Edit a message."""
        if is_preview(outgoing):
            self._world.check_sender(self._process, outgoing)
        self._check_rate_limit(outgoing)
        await self._world.before(self._process, "edit")
        outcome = await super().edit(outgoing, message_id=message_id)
        self._note_limit(outgoing, outcome)
        await self._world.after(self._process, "edit")
        return outcome

    def _check_rate_limit(self, outgoing: Outgoing) -> None:
        left = self._limited_until.get(str(outgoing.to), 0.0) - asyncio.get_running_loop().time()
        # A gateway's clock has a resolution of one microsecond.
        if left * SECOND >= 1:
            self._world.breaches.append(
                f"{self._process.name} sends to {outgoing.to.chat_id} {left:.1f} s before the rate limit ends"
            )

    def _note_limit(self, outgoing: Outgoing, outcome: Outcome) -> None:
        if isinstance(outcome, Rejected) and outcome.retry_after is not None:
            until = asyncio.get_running_loop().time() + outcome.retry_after / SECOND
            self._limited_until[str(outgoing.to)] = until


def is_preview(outgoing: Outgoing) -> bool:
    """Return whether the message is a preview: the text of an unfinished turn."""
    return isinstance(outgoing.piece, TextPiece) and outgoing.piece.text.endswith(PREVIEW_SUFFIX)
