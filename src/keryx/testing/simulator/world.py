"""A simulated world: one real store, a platform with its own records, and gateways that die, freeze and fail.

Each call to the store, the platform, the agent and a tool is a fault point. A plan decides by its number whether a
fault happens there; without a plan none does. A gateway that dies is started again later, under another name.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Collection
from dataclasses import field
from random import Random

from keryx.clock import HOUR
from keryx.config import Settings
from keryx.core.conversations.transactions.program_sessions import enter_store
from keryx.core.deliveries.views.message_fates import (
    EndedTurn,
    list_ended,
    next_probe_at,
)
from keryx.core.people.rules.toolset import ALL, ToolsetSettings
from keryx.core.people.transactions.pair_stranger import IssuedCode, approve_pairing, offer_pairing
from keryx.core.upkeep.views.nodes import show_nodes
from keryx.errors import StoreUnavailable
from keryx.gateway.gateway import Gateway
from keryx.gateway.runtime.runtime import Runtime
from keryx.ids import Ids
from keryx.platforms.adapter import Outgoing
from keryx.store.database import Database, T, Tx
from keryx.store.statements import TOPICS, Topic
from keryx.testing.faults import Crash
from keryx.testing.platform import FakePlatform
from keryx.testing.simulator.adapter import SimulatedAdapter, is_preview
from keryx.testing.simulator.clock import SimulatedClock
from keryx.testing.simulator.fault_plan import FaultKind, FaultPlan, FaultPoint, make_error
from keryx.testing.simulator.loop import Process, VirtualLoop, no_process_context
from keryx.testing.simulator.script import Effects, ScriptedAgent
from keryx.testing.simulator.store import NOTICED_AFTER_SECONDS, ProcessStore, run_at_once
from keryx.tools.tool import Toolbox
from keryx.values import dataclass

RESTART_SECONDS = 1.5
FROZEN_SECONDS = 50.0
"""Longer than a lease."""
LOOK_SECONDS = 5.0
"""How often gateways look for work that comes due without a commit: seldom, because most looks find none."""
FAULT_POINTS_MAX = 50_000

SETTINGS = Settings(welcome=None, toolsets=ToolsetSettings(by_role={"member": frozenset({ALL})}))


class TooManyCalls(KeyboardInterrupt):
    """Far too many calls were made. asyncio lets this kind of exception through, so that the whole world stops."""


@dataclass(slots=True)
class SimulatedGateway:
    """A gateway and its process."""

    process: Process
    gateway: Gateway
    is_draining: bool = False


@dataclass(slots=True, kw_only=True)
class World:
    """The store, the platform, the gateways, and a record of what happened."""

    loop: VirtualLoop
    clock: SimulatedClock
    real: Database
    ids: Ids
    platform: FakePlatform = field(default_factory=FakePlatform)
    settings: Settings = SETTINGS
    plan: FaultPlan = lambda _: None
    restarts: bool = True
    """Whether a gateway that dies is started again."""
    effects: Effects = field(default_factory=Effects)
    fault_points: list[FaultPoint] = field(default_factory=list)
    statements: dict[int, list[str]] = field(default_factory=dict)
    """The statements of a transaction, by the number of the fault point before it."""
    wakes: Random = field(default_factory=lambda: Random(0))
    """The order in which waiters of the same thing wake: only the seed decides it."""
    ends: dict[int, EndedTurn] = field(default_factory=dict)
    """Every turn that has ended, with the surfaces that showed its conversation at its end."""
    ended_before: int = 0
    """The turn up to which all ended turns are known."""
    undone: Counter[str] = field(default_factory=Counter)
    """How often each chat said ``/undo``."""
    retried: Counter[str] = field(default_factory=Counter)
    """How often people asked for another answer, by chat."""
    turns_waiting: int = 0
    """How many turns wait for a person's answer."""
    breaches: list[str] = field(default_factory=list)
    nodes: list[SimulatedGateway] = field(default_factory=list)
    stores: list[ProcessStore] = field(default_factory=list)
    tasks: "list[asyncio.Task[None]]" = field(default_factory=list)
    _restarted: int = 0
    _is_own_call: bool = False
    _statement: int | None = None
    _fault_kind: FaultKind = "kill"
    _seen: list[str] = field(default_factory=list)

    def hook(self, name: str) -> None:
        """Note a statement that is about to run, and fail before it if planned; the store calls this."""
        if self._is_own_call:
            return
        self._seen.append(name)
        if self._statement is None or len(self._seen) != self._statement:
            return
        self._statement = None
        if self._fault_kind == "exception":
            raise StoreUnavailable(f"planned before {name}")
        raise Crash(f"planned before {name}")

    def in_wake_order(self, waiting: list[T]) -> list[T]:
        """Return waiters of the same thing in the order in which they wake."""
        return self.wakes.sample(waiting, len(waiting))

    def call_store(self, work: Awaitable[T]) -> T:
        """Run a call of the world itself on the store, without faults."""
        self._is_own_call = True
        try:
            return run_at_once(_awaited(work))
        finally:
            self._is_own_call = False

    def let_in(self, *users: str) -> None:
        """Pair people of the platform, so that they may write."""

        def admit(tx: Tx) -> None:
            owner = enter_store(tx, person_id=None)
            for user in users:
                offer = offer_pairing(tx, self.platform.source(user), self.ids)
                assert isinstance(offer, IssuedCode), offer
                approve_pairing(tx, offer.request_no, by=owner.id)

        self.call_store(self.real.write(admit))

    # ---------------------------------------------------------------------------------------- processes

    def start(self, name: str) -> SimulatedGateway:
        """Start a gateway."""
        process = Process(name)
        store = ProcessStore(process, self.real, self)
        self.stores.append(store)

        async def checkpoint(what: str) -> None:
            await self.before(process, what)

        agent = ScriptedAgent(self.effects, checkpoint)
        runtime = Runtime(
            database=store,
            settings=self.settings,
            ids=self.ids,
            clock=self.clock,
            holder=name,
            platforms=frozenset({self.platform.name}),
            poll_seconds=LOOK_SECONDS,
        )
        adapter = SimulatedAdapter(self.platform, process, self)
        node = SimulatedGateway(process, Gateway(runtime, agent, Toolbox(agent.tools()), [adapter]))
        self.nodes.append(node)
        self.tasks.append(process.spawn(self._run(node)))
        return node

    async def _run(self, node: SimulatedGateway) -> None:
        """Run the gateway; if it ends other than on request, that is a breach."""
        try:
            await node.gateway.start()
            await node.gateway.wait()
        except asyncio.CancelledError:
            raise
        except StoreUnavailable:
            pass  # the store is away at the start: the process is started again
        except Exception as error:  # noqa: BLE001 - recorded, not hidden
            self.breaches.append(f"{node.process.name} ended by itself: {error!r}")
        if not node.is_draining and node.process.state == "alive":
            self._kill(node.process)

    async def drain(self, node: SimulatedGateway) -> None:
        """Let a gateway drain and end, as SIGTERM does."""
        node.is_draining = True

        async def stop() -> None:
            await node.gateway.stop(seconds=3)
            self._kill(node.process)

        self.tasks.append(node.process.spawn(stop()))

    def _kill(self, process: Process) -> None:
        process.kill()
        if self.restarts:
            self._restarted += 1
            name = f"restarted-{self._restarted}"
            self.loop.call_later(RESTART_SECONDS, self.start, name, context=no_process_context())

    @property
    def alive(self) -> list[SimulatedGateway]:
        """The gateways that run now."""
        return [node for node in self.nodes if node.process.state == "alive" and not node.is_draining]

    # ---------------------------------------------------------------------------------- fault points

    async def before(self, process: Process, what: str) -> None:
        """Carry out the fault that is planned before a call."""
        point = self._note(process, what)
        fault = self.plan(point)
        self._seen = self.statements[point.no] = []
        self._statement = None
        if fault is None:
            return
        if fault.statement is not None:
            self._statement, self._fault_kind = fault.statement, fault.kind
            return
        await self._carry_out(process, fault.kind, what)

    async def after(self, process: Process, what: str) -> None:
        """Carry out the fault that is planned after a call, before the caller gets its result."""
        fault = self.plan(self._note(process, f"after {what}"))
        if fault is not None and fault.kind != "exception":
            await self._carry_out(process, fault.kind, what)

    async def _carry_out(self, process: Process, kind: FaultKind, what: str) -> None:
        match kind:
            case "kill":
                await self.die(process)
            case "freeze":
                process.freeze()
                self.loop.call_later(FROZEN_SECONDS, process.thaw, context=no_process_context())
                await asyncio.sleep(0)
            case "exception":
                raise make_error(what)

    async def die(self, process: Process) -> None:
        """Kill the process here. Nothing of it continues, so this never returns."""
        self._kill(process)
        await asyncio.get_running_loop().create_future()

    def committed(self, by: ProcessStore, wakes: Collection[Topic]) -> None:
        """Tell the stores of all processes about a commit; only its own store knows its topics."""
        self._note_turns()
        for store in self.stores:
            if store is by:
                store.notice(wakes, after_seconds=0.0)
            elif store.process.state != "dead":
                store.notice(TOPICS, after_seconds=NOTICED_AFTER_SECONDS)

    def _note_turns(self) -> None:
        """At each commit that ends a turn, record where its conversation is shown at that moment."""
        done = set(self._seen)
        self.turns_waiting += ("turns.wait" in done) - ("turns.resume" in done)
        if "turns.end" not in done:
            return
        after = self.ended_before
        for end in self.call_store(self.real.read(lambda tx: list_ended(tx, after=after))):
            self.ends.setdefault(end.id, end)
        while self.ended_before + 1 in self.ends:
            self.ended_before += 1

    def check_sender(self, process: Process, outgoing: Outgoing) -> None:
        """Check that a process that sends holds the account, which the platform cannot tell later.

        Check too that the address is not known to be dead, except for a preview: its reader has just written.
        """
        to = outgoing.to
        nodes, probe_at = self.call_store(self.real.read(lambda tx: (show_nodes(tx), next_probe_at(tx, to))))
        for account in nodes.accounts:
            if account.platform == self.platform.name and account.holder != process.name:
                self.breaches.append(f"{process.name} sends, and {account.holder} has the account")
        # The wall clock may have been set back a little since it was claimed.
        if probe_at is not None and probe_at > self.clock.now() + HOUR // 2 and not is_preview(outgoing):
            self.breaches.append(f"{process.name} sends to {to.chat_id}, which is known to be dead")

    def _note(self, process: Process, what: str) -> FaultPoint:
        point = FaultPoint(len(self.fault_points), process.name, what)
        self.fault_points.append(point)
        if point.no >= FAULT_POINTS_MAX:
            raise TooManyCalls(f"{[f'{each.process} {each.what}' for each in self.fault_points[-12:]]}")
        return point

    # ---------------------------------------------------------------------------------------- the end

    async def end(self) -> None:
        """End all gateways, whatever their state."""
        self.restarts = False
        for node in self.nodes:
            node.process.reap()
        me = asyncio.current_task()
        for _ in range(20):
            rest = [task for task in self.loop.unfinished if task is not me]
            if not rest:
                return
            for task in rest:
                task.cancel()
            await asyncio.wait(rest, timeout=1.0)


async def _awaited(work: Awaitable[T]) -> T:
    return await work
