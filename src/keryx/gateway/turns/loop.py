"""The turn loop: begins what waits, lets the agent answer, and ends each turn once.

Everything it knows is in the store: another gateway can take up any turn from its last step. It renews the leases of
its turns, cancels an agent whose lease it could not renew in time, and stops one within a moment of being asked to.
"""

import asyncio
from functools import partial
from typing import Any, Literal

from keryx.agents.agent import Agent, Answer
from keryx.clock import SECOND, Micros
from keryx.core.conversations.rules.message import NewMessage
from keryx.core.conversations.rules.session import SessionId
from keryx.core.turns.rules.lease import RENEW_EVERY, TurnLease, must_cancel
from keryx.core.turns.rules.turn import yields_to_others
from keryx.core.turns.transactions.begin_turn import BegunTurn, begin_turn
from keryx.core.turns.transactions.fail_turn import (
    Failure,
    fail_turn,
    hand_back_turn,
    roll_back_turn,
    stop_turn,
)
from keryx.core.turns.transactions.finish_turn import Reply, finish_turn
from keryx.core.turns.transactions.renew_turn import renew_turn
from keryx.core.turns.views.ready_sessions import list_ready
from keryx.core.turns.views.turn import list_stopping, show_turn
from keryx.core.values.turn_states import TurnId
from keryx.errors import AgentFailed, LeaseLost, StoreUnavailable
from keryx.gateway.runtime.log import concerning, log_of
from keryx.gateway.runtime.metrics import TurnEnd
from keryx.gateway.runtime.runtime import Runtime, WakeSignal
from keryx.gateway.turns.stage import TurnStage, TurnStopped, TurnWaits, make_brief
from keryx.gateway.turns.turn_tools import tools_for
from keryx.store.database import Tx
from keryx.tools.tool import Toolbox

TURNS_MAX = 64
STOP_LOOK_SECONDS = 0.1
FAULT_RETRY: Micros = 5 * SECOND
FAULT = "something went wrong inside Keryx (turn {turn_id}); the log says what"
NOT_COMPRESSED = "Whoever answers here keeps an own account of the conversation, so nothing was summarised."

End = Literal["stop", "roll back", "hand back", "lease lost"]

_log = log_of("turns")


class TurnLoop:
    """Runs the turns of every session, or with ``session_id`` of one."""

    def __init__(
        self,
        runtime: Runtime,
        agent: Agent,
        toolbox: Toolbox,
        *,
        session_id: SessionId | None = None,
        turns_max: int = TURNS_MAX,
    ) -> None:
        self._runtime = runtime
        self._agent = agent
        self._toolbox = toolbox
        self._session_id = session_id
        self.turns_max = turns_max
        self._running: dict[TurnId, _Running] = {}
        self._bell = WakeSignal(runtime, "turns")
        self._is_draining = False
        self._has_ended = asyncio.Event()
        """Set when nothing more will begin."""
        self._is_drained = asyncio.Event()

    @property
    def running(self) -> int:
        """How many turns run now."""
        return len(self._running)

    async def run(self) -> None:
        """Begin and run turns until cancelled or drained."""
        beside = (
            asyncio.create_task(self._watch_for_stops(), name="keryx-stops"),
            asyncio.create_task(self._bell.listen(), name="keryx-news"),
        )
        try:
            await self._bell.wait()
            while not self._is_draining:
                await self._begin()
                await self._bell.wait()
            self._has_ended.set()
            await self._is_drained.wait()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            self._has_ended.set()

    async def drain(self, seconds: float) -> None:
        """Begin nothing more, let what runs finish for so long, and hand the rest back; ``run`` must be under way."""
        self._is_draining = True
        self._bell.ring()
        await self._has_ended.wait()
        for each in self._running.values():
            if yields_to_others(each.begun.purpose):
                each.end("hand back")
        tasks = [each.task for each in self._running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for each in list(self._running.values()):
            each.end("hand back")
        await asyncio.gather(*(each.task for each in list(self._running.values())), return_exceptions=True)
        self._is_drained.set()

    async def _begin(self) -> None:
        """Begin the turns that wait, as many as there is room for."""
        room = self._room
        runtime, session_id = self._runtime, self._session_id
        try:
            ready = await runtime.database.read(lambda tx: list_ready(tx, session_id=session_id, limit=room))
        except StoreUnavailable as error:
            await self._wait_for_store(error)
            return
        # Together, and not one after the other: on SQLite they share commits, on PostgreSQL they run side by side.
        begun = await asyncio.gather(*map(self._begin_in, ready))
        if ready and not any(begun):
            # Others were faster: they are left a moment, and this loop does not race them for the rest.
            await runtime.pace.sleep(STOP_LOOK_SECONDS)

    async def _begin_in(self, session_id: SessionId) -> bool:
        """Begin the next turn of a session, unless somebody else was faster or it has to wait after all."""
        runtime = self._runtime
        try:
            begun = await runtime.write(
                lambda tx: begin_turn(tx, holder=runtime.holder, session_id=session_id)
            )
        except StoreUnavailable as error:
            await self._wait_for_store(error)
            return False
        if begun is None:
            return False
        runtime.metrics.turns_begun.count(begun.purpose)
        running = _Running(self, begun)
        self._running[begun.turn_id] = running
        running.task.add_done_callback(lambda _: self._ended(begun.turn_id))
        return True

    async def _wait_for_store(self, error: StoreUnavailable) -> None:
        _log.warning("turns wait for the store: %s", error)
        await self._runtime.pace.sleep(self._runtime.look_seconds)

    @property
    def _room(self) -> int:
        return max(0, self.turns_max - sum(each.takes_place for each in self._running.values()))

    def _ended(self, turn_id: TurnId) -> None:
        if not self._room:
            # There was none, so what was ready may have been left alone; for its own session its last commit has rung.
            self._bell.ring()
        running = self._running.pop(turn_id)
        if not running.task.cancelled() and (error := running.task.exception()) is not None:
            self._runtime.metrics.turns_ended.count("lost")
            _log.failed(
                "a turn was given up", error=error, session=running.begun.lease.session_id, turn=turn_id
            )

    async def _watch_for_stops(self) -> None:
        """Tell running turns that they are asked to stop, a moment after it is asked, here or elsewhere."""
        database = self._runtime.database
        while True:
            since = database.change_no
            if self._running:
                try:
                    stopping = await database.read(lambda tx: list_stopping(tx, self._runtime.holder))
                except StoreUnavailable:
                    stopping = []
                for turn_id in stopping:
                    if turn_id in self._running:
                        self._running[turn_id].stop()
            await database.changed(since=since, timeout_seconds=self._runtime.look_seconds)
            await self._runtime.pace.sleep(STOP_LOOK_SECONDS)

    async def answer(self, running: "_Running") -> Answer:
        """Let the agent answer a turn."""
        runtime, begun = self._runtime, running.begun
        look = partial(
            show_turn, turn_id=begun.turn_id, platforms=runtime.platforms, id_salt=runtime.settings.id_salt
        )
        view = await runtime.database.read(look)
        await self._toolbox.ready()
        toolbox = tools_for(self._toolbox, view, purpose=begun.purpose, toolsets=runtime.settings.toolsets)
        stage = running.stage = TurnStage(runtime, toolbox, view, begun)
        if await stage.finish_open_calls():
            view = await runtime.database.read(look)
        self._measure(begun)
        return await self._agent.run(make_brief(view, toolbox, begun), stage)

    def _measure(self, begun: BegunTurn) -> None:
        """Count how long the last message waited for the agent, if this is the first that it hears of it."""
        last = begun.answers[-1]
        if begun.purpose == "reply" and not begun.resumed and not last.attempts:
            waited = self._runtime.clock.now() - last.received_at
            self._runtime.metrics.update_to_agent.observe(waited / SECOND)

    @property
    def runtime(self) -> Runtime:
        """Where it works."""
        return self._runtime


class _Running:
    """One turn under way: the agent's task, the keeping of its lease, and its one end."""

    def __init__(self, loop: TurnLoop, begun: BegunTurn) -> None:
        self._loop = loop
        self._runtime = loop.runtime
        self.begun = begun
        self.stage: TurnStage | None = None
        self._wanted: End | None = None
        # A future, and not an event with a task that waits for it: most turns are over without anybody asking.
        self._interrupted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._run(), name=f"keryx-turn-{begun.turn_id}")

    @property
    def takes_place(self) -> bool:
        """Whether it counts among the turns that may run at once.

        What Keryx does by itself is little and nobody waits for it. Who gave a task away waits for it, so that runs in
        the other's place.
        """
        return not (yields_to_others(self.begun.purpose) or self.begun.answers[-1].purpose == "task")

    def end(self, wanted: End) -> None:
        """Cancel the agent and end the turn this way, unless it is ending."""
        if self._wanted is None:
            self._wanted = wanted
            self.stop()

    def stop(self) -> None:
        """Cancel the agent, because a person asked for it unless ``end`` says otherwise."""
        if not self._interrupted.done():
            self._interrupted.set_result(None)

    async def _run(self) -> None:
        with concerning(session=self.begun.lease.session_id, turn=self.begun.turn_id):
            await self._work()

    async def _work(self) -> None:
        answering = asyncio.create_task(self._loop.answer(self))
        keeping = asyncio.create_task(self._keep_lease())
        try:
            either: tuple[asyncio.Future[Any], ...] = (answering, self._interrupted)
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                await self._end_answered(answering)
            else:
                answering.cancel()
                await asyncio.gather(answering, return_exceptions=True)
                await self._end_early(self._wanted or await self._why_stopped())
        except LeaseLost:
            self._count("lost")
            _log.info("the turn was taken over; its result is dropped")
        finally:
            for task in (answering, keeping):
                task.cancel()
            await asyncio.gather(answering, keeping, return_exceptions=True)

    async def _why_stopped(self) -> End:
        """Return whether the stop is wanted for an end or for a new beginning."""
        renewed = await self._runtime.record(self.begun.held, renew_turn)
        return "roll back" if renewed.roll_back else "stop"

    async def _end_answered(self, answering: "asyncio.Task[Answer]") -> None:
        try:
            answer = answering.result()
        except TurnWaits:
            self._count("waiting")
        except TurnStopped as stopped:
            await self._end_early("roll back" if stopped.roll_back else "stop")
        except AgentFailed as failure:
            await self._fail(failure.reason, retry_after=failure.retry_after)
        except LeaseLost:
            raise
        except Exception as error:  # noqa: BLE001 - an agent is somebody else's code, and its turn needs an end
            _log.failed("the turn failed", error=error)
            await self._fail(FAULT.format(turn_id=self.begun.turn_id), retry_after=FAULT_RETRY)
        else:
            await self._finish(answer)

    async def _finish(self, answer: Answer) -> None:
        stage, message, notice = self.stage, answer.message, answer.notice
        if self.begun.purpose == "compress":
            # Whoever asked is told, whatever agent it was; what that says otherwise answers nobody.
            message, notice = None, notice or NOT_COMPRESSED
        reply = Reply(
            message=message,
            silent=answer.silent,
            seen=() if stage is None else stage.seen,
            notice=notice,
            unsaid=answer.unsaid,
            wants_title=self._runtime.settings.titles and stage is not None and stage.asked_model,
        )
        await self._runtime.record(self.begun.held, finish_turn, reply=reply, ids=self._runtime.ids)
        self._count("answered")

    async def _fail(self, reason: str, *, retry_after: Micros | None) -> None:
        ids, partial = self._runtime.ids, self._partial

        def fail(tx: Tx, held: TurnLease) -> Literal["again", "failed"]:
            retry_at = None if retry_after is None else tx.now + retry_after
            failure = Failure(reason=reason, retry_at=retry_at)
            return fail_turn(tx, held, failure=failure, partial=partial, ids=ids)

        end = await self._runtime.record(self.begun.held, fail)
        self._count("retried" if end == "again" else "failed")

    async def _end_early(self, how: End) -> None:
        held, partial = self.begun.held, self._partial
        match how:
            case "stop":
                await self._runtime.record(held, stop_turn, partial=partial)
                self._count("stopped")
            case "roll back":
                await self._runtime.record(held, roll_back_turn, partial=partial, ids=self._runtime.ids)
                self._count("rolled_back")
            case "hand back":
                await self._runtime.record(held, hand_back_turn)
                self._count("handed_back")
            case "lease lost":
                self._count("lost")
                _log.warning("the turn could not renew its lease in time and was dropped")

    @property
    def _partial(self) -> NewMessage | None:
        return None if self.stage is None else self.stage.partial

    def _count(self, end: TurnEnd) -> None:
        self._runtime.metrics.turns_ended.count(end)
        _log.info("the turn ended: %s", end)

    async def _keep_lease(self) -> None:
        """Renew the lease until cancelled; without renewal for too long, end the turn, because others may begin."""
        runtime, begun = self._runtime, self.begun
        last = runtime.clock.monotonic()
        while True:
            await runtime.pace.sleep(RENEW_EVERY / SECOND)
            try:
                await runtime.write(lambda tx: renew_turn(tx, begun.held))
                last = runtime.clock.monotonic()
            except LeaseLost:
                self.end("lease lost")
                return
            except StoreUnavailable as error:
                _log.warning("the turn cannot renew its lease: %s", error)
                if must_cancel(last_renewed_at=last, now=runtime.clock.monotonic()):
                    self.end("lease lost")
                    return
