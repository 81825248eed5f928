"""The turn loop: begin turns, run the agent, and end each turn once.

All state is in the store, so another gateway can continue any turn from its last step. The loop renews the leases of
its turns, cancels an agent whose lease it could not renew in time, and stops a turn soon after a person asks for it.
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
from keryx.core.turns.views.pending_work import list_ready
from keryx.core.turns.views.turn import list_stopping, show_turn
from keryx.core.values.turn_states import TurnId
from keryx.errors import AgentFailed, LeaseLost, StoreUnavailable
from keryx.gateway.runtime.log import log_ids, log_of
from keryx.gateway.runtime.metrics import TurnEnd
from keryx.gateway.runtime.runtime import Runtime, WakeSignal, cancel
from keryx.gateway.turns.turn_recorder import TurnRecorder, TurnStopped, TurnWaits, make_brief
from keryx.gateway.turns.turn_tools import tools_for
from keryx.store.database import Tx
from keryx.tools.tool import Toolbox

TURNS_MAX = 64
STOP_POLL_SECONDS = 0.1
INTERNAL_ERROR_RETRY: Micros = 5 * SECOND
INTERNAL_ERROR = "something went wrong inside Keryx (turn {turn_id}); the log says what"
NOT_COMPRESSED = "The agent here keeps its own copy of the conversation, so nothing was summarised."

EarlyEnd = Literal["stopped", "rolled_back", "handed_back", "lost"]

_log = log_of("turns")


class TurnLoop:
    """Runs the turns of all sessions, or only those of ``session_id``."""

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
        self._running: dict[TurnId, _RunningTurn] = {}
        self._wake_signal = WakeSignal(runtime, "turns")
        self._is_draining = False
        self._no_more_begin = asyncio.Event()
        self._is_drained = asyncio.Event()

    @property
    def running(self) -> int:
        """The number of turns that run now."""
        return len(self._running)

    async def run(self) -> None:
        """Begin and run turns until cancelled or drained."""
        background = (
            asyncio.create_task(self._watch_for_stops(), name="keryx-stops"),
            asyncio.create_task(self._wake_signal.watch_commits(), name="keryx-commits"),
        )
        try:
            await self._wake_signal.wait()
            while not self._is_draining:
                await self._begin()
                await self._wake_signal.wait()
            self._no_more_begin.set()
            await self._is_drained.wait()
        finally:
            await cancel(*background)
            self._no_more_begin.set()

    async def drain(self, seconds: float) -> None:
        """Begin no more turns, wait up to ``seconds`` for the running ones, and hand back the rest; needs ``run``."""
        self._is_draining = True
        self._wake_signal.set()
        await self._no_more_begin.wait()
        for each in self._running.values():
            if yields_to_others(each.begun.purpose):
                each.end("handed_back")
        tasks = [each.task for each in self._running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for each in list(self._running.values()):
            each.end("handed_back")
        await asyncio.gather(*(each.task for each in list(self._running.values())), return_exceptions=True)
        self._is_drained.set()

    async def _begin(self) -> None:
        """Begin ready turns, as many as there is room for."""
        room = self._room
        runtime, session_id = self._runtime, self._session_id
        try:
            ready = await runtime.database.read(lambda tx: list_ready(tx, session_id=session_id, limit=room))
        except StoreUnavailable as error:
            await self._wait_for_store(error)
            return
        # At the same time: on SQLite the transactions share commits, on PostgreSQL they run in parallel.
        begun = await asyncio.gather(*map(self._begin_in, ready))
        if ready and not any(begun):
            # Other gateways were faster. Wait a moment, so that the gateways do not compete for the rest.
            await runtime.sleep(STOP_POLL_SECONDS)

    async def _begin_in(self, session_id: SessionId) -> bool:
        """Begin the next turn of a session; return False if another gateway was faster or the turn must wait."""
        runtime = self._runtime
        zone = runtime.settings.reset.default.zone
        try:
            begun = await runtime.database.write(
                lambda tx: begin_turn(tx, holder=runtime.holder, session_id=session_id, zone=zone)
            )
        except StoreUnavailable as error:
            await self._wait_for_store(error)
            return False
        if begun is None:
            return False
        runtime.metrics.turns_begun[begun.purpose] += 1
        running = _RunningTurn(runtime, self._agent, self._toolbox, begun)
        self._running[begun.turn_id] = running
        running.task.add_done_callback(lambda _: self._ended(begun.turn_id))
        return True

    async def _wait_for_store(self, error: StoreUnavailable) -> None:
        _log.warning("turns wait for the store: %s", error)
        await self._runtime.sleep(self._runtime.poll_seconds)

    @property
    def _room(self) -> int:
        return max(0, self.turns_max - sum(each.counts for each in self._running.values()))

    def _ended(self, turn_id: TurnId) -> None:
        if not self._room:
            # Ready turns of other sessions may have been left for lack of room. The last commit of this turn has woken
            # the loop for its own session.
            self._wake_signal.set()
        running = self._running.pop(turn_id)
        if not running.task.cancelled() and (error := running.task.exception()) is not None:
            self._runtime.metrics.turns_ended["lost"] += 1
            session_id = running.begun.lease.session_id
            _log.failed("a turn failed because of a bug", error=error, session=session_id, turn=turn_id)

    async def _watch_for_stops(self) -> None:
        """Stop running turns soon after a person asked for it, in this process or another."""
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
            await database.changed(since=since, timeout_seconds=self._runtime.poll_seconds)
            await self._runtime.sleep(STOP_POLL_SECONDS)


class _RunningTurn:
    """One running turn: the agent's task, the renewal of its lease, and its one end."""

    def __init__(self, runtime: Runtime, agent: Agent, toolbox: Toolbox, begun: BegunTurn) -> None:
        self._runtime = runtime
        self._agent = agent
        self._toolbox = toolbox
        self.begun = begun
        self._recorder: TurnRecorder | None = None
        self._wanted: EarlyEnd | None = None
        # A future, not an event with a task that waits for it: most turns are never interrupted.
        self._interrupted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._run(), name=f"keryx-turn-{begun.turn_id}")

    @property
    def counts(self) -> bool:
        """Whether the turn counts towards ``turns_max``.

        Keryx's own turns are short and no person waits for them. A delegated task runs in the place of the turn that
        waits for its result.
        """
        return not (yields_to_others(self.begun.purpose) or self.begun.answers[-1].purpose == "task")

    def end(self, wanted: EarlyEnd) -> None:
        """Cancel the agent and end the turn this way, unless the turn already ends in another way."""
        if self._wanted is None:
            self._wanted = wanted
            self.stop()

    def stop(self) -> None:
        """Cancel the agent: a person asked for it, unless ``end`` gave another reason."""
        if not self._interrupted.done():
            self._interrupted.set_result(None)

    async def _run(self) -> None:
        with log_ids(session=self.begun.lease.session_id, turn=self.begun.turn_id):
            answering = asyncio.create_task(self._answer())
            renewing = asyncio.create_task(self._renew_lease())
            try:
                either: tuple[asyncio.Future[Any], ...] = (answering, self._interrupted)
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    await self._end_answered(answering)
                else:
                    await cancel(answering)
                    await self._end_early(self._wanted or await self._why_stopped())
            except LeaseLost:
                self._count("lost")
                _log.info("another gateway has taken over the turn; the result is dropped")
            finally:
                await cancel(answering, renewing)

    async def _answer(self) -> Answer:
        runtime, begun = self._runtime, self.begun
        show = partial(
            show_turn, turn_id=begun.turn_id, platforms=runtime.platforms, id_salt=runtime.settings.id_salt
        )
        view = await runtime.database.read(show)
        await self._toolbox.ready()
        toolbox = tools_for(self._toolbox, view, purpose=begun.purpose, toolsets=runtime.settings.toolsets)
        recorder = self._recorder = TurnRecorder(runtime, toolbox, view, begun)
        if await recorder.finish_open_calls():
            view = await runtime.database.read(show)
        last = begun.answers[-1]
        if begun.purpose == "reply" and not begun.resumed and not last.attempts:
            # The first time that the agent sees the message.
            waited = runtime.clock.now() - last.received_at
            runtime.metrics.update_to_agent.observe(waited / SECOND)
        return await self._agent.run(make_brief(view, toolbox, begun), recorder)

    async def _why_stopped(self) -> EarlyEnd:
        """Return whether the person wants the turn to end, or to begin again with a new message."""
        renewed = await self._runtime.record(self.begun.held, renew_turn)
        return "rolled_back" if renewed.roll_back else "stopped"

    async def _end_answered(self, answering: "asyncio.Task[Answer]") -> None:
        try:
            answer = answering.result()
        except TurnWaits:
            self._count("waiting")
        except TurnStopped as stopped:
            await self._end_early("rolled_back" if stopped.roll_back else "stopped")
        except AgentFailed as failure:
            await self._fail(failure.reason, retry_after=failure.retry_after)
        except LeaseLost:
            raise
        except Exception as error:  # noqa: BLE001 - whatever an agent raises, its turn needs an end
            _log.failed("the turn failed", error=error)
            await self._fail(
                INTERNAL_ERROR.format(turn_id=self.begun.turn_id), retry_after=INTERNAL_ERROR_RETRY
            )
        else:
            await self._finish(answer)

    async def _finish(self, answer: Answer) -> None:
        recorder, message, notice = self._recorder, answer.message, answer.notice
        assert recorder is not None, "the agent gets the recorder before it answers"
        if self.begun.purpose == "compress":
            # The person gets a notice from every kind of agent. A message of the agent would answer no question.
            message, notice = None, notice or NOT_COMPRESSED
        reply = Reply(
            message=message,
            silent=answer.silent,
            seen=recorder.seen,
            notice=notice,
            unsaid=answer.unsaid,
            wants_title=self._runtime.settings.titles and recorder.last_use is not None,
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

    async def _end_early(self, end: EarlyEnd) -> None:
        held, partial, record = self.begun.held, self._partial, self._runtime.record
        match end:
            case "stopped":
                await record(held, stop_turn, partial=partial)
            case "rolled_back":
                await record(held, roll_back_turn, partial=partial, ids=self._runtime.ids)
            case "handed_back":
                await record(held, hand_back_turn)
            case "lost":
                _log.warning("the turn was dropped because its lease could not be renewed in time")
        self._count(end)

    @property
    def _partial(self) -> NewMessage | None:
        return None if self._recorder is None else self._recorder.partial

    def _count(self, end: TurnEnd) -> None:
        self._runtime.metrics.turns_ended[end] += 1
        _log.info("the turn ended: %s", end)

    async def _renew_lease(self) -> None:
        """Renew the lease until cancelled. End the turn when the lease is lost, or was not renewed for too long."""
        runtime, begun = self._runtime, self.begun
        last = runtime.clock.monotonic()
        while not must_cancel(last_renewed_at=last, now=runtime.clock.monotonic()):
            await runtime.sleep(RENEW_EVERY / SECOND)
            try:
                await runtime.database.write(lambda tx: renew_turn(tx, begun.held))
                last = runtime.clock.monotonic()
            except LeaseLost:
                break
            except StoreUnavailable as error:
                _log.warning("the turn cannot renew its lease: %s", error)
        self.end("lost")
