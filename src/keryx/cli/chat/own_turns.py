"""Run the turns of a terminal's own session, with one turn loop for each session the terminal has shown."""

import asyncio
from typing import Final

from keryx.agents.agent import Agent
from keryx.core.conversations.rules.session import SessionId
from keryx.core.turns.views.terminal import TerminalView
from keryx.core.turns.views.terminal_session import is_at_work
from keryx.gateway.runtime.runtime import Runtime
from keryx.gateway.turns.loop import TurnLoop
from keryx.tools.tool import Toolbox

TURN_SECONDS_MAX: Final = 86_400.0


class OwnTurns:
    """Starts a turn loop when a turn of the session is due, and ends the loop when the session is at rest."""

    def __init__(self, runtime: Runtime, agent: Agent, toolbox: Toolbox) -> None:
        self._runtime = runtime
        self._agent = agent
        self._toolbox = toolbox
        self._loops: dict[str, tuple[TurnLoop, asyncio.Task[None]]] = {}
        self._retiring: dict[asyncio.Task[None], TurnLoop] = {}
        self._is_ending = False

    async def run(self, view: TerminalView) -> None:
        """Start a loop for the view's session if a turn is due; otherwise end the loops of sessions at rest."""
        current, may_start = view.session_id, not (view.has_gateway or self._is_ending)
        if current is not None and view.is_due and may_start and current not in self._loops:
            loop = TurnLoop(
                self._runtime, self._agent, self._toolbox, session_id=SessionId(current), turns_max=1
            )
            self._loops[current] = (loop, asyncio.create_task(loop.run(), name=f"keryx-turns-{current}"))
            return
        for session_id, (loop, _task) in list(self._loops.items()):
            # Not while a turn runs or has just begun: a loop that ends no longer notices /stop.
            if not loop.running and not await self._is_active(session_id):
                self._retire(session_id)

    async def end(self, seconds: float) -> None:
        """Begin no more turns, wait up to ``seconds`` for the running ones, and hand the rest back."""
        self._is_ending = True
        for session_id in list(self._loops):
            self._retire(session_id)
        await asyncio.gather(*(loop.drain(seconds) for loop in list(self._retiring.values())))
        await asyncio.gather(*self._retiring, return_exceptions=True)

    async def _is_active(self, session_id: str) -> bool:
        return await self._runtime.database.read(lambda tx: is_at_work(tx, session_id))

    def _retire(self, session_id: str) -> None:
        """Begin no more turns of a session, and forget its loop when the last turn has ended."""
        if session_id not in self._loops:
            return  # the person left while the session was being read
        loop, task = self._loops.pop(session_id)

        async def retire() -> None:
            await loop.drain(TURN_SECONDS_MAX)
            await task

        retiring = asyncio.create_task(retire())
        self._retiring[retiring] = loop
        retiring.add_done_callback(self._retiring.pop)
