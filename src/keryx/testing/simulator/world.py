"""A simulated world: one real store, a platform that keeps its own books, and gateways that die, freeze and fail.

Every call to the store, to the platform, of the agent and of a tool is a *place*. A plan decides by its number whether
something happens there; without a plan nothing does. Who dies is started again after a while, under another name.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import field
from random import Random
from typing import Final, Literal, NamedTuple, get_args

from keryx.clock import DAY, HOUR, SECOND, Micros
from keryx.config import Settings
from keryx.domain.toolset import ALL, ToolsetSettings
from keryx.errors import StoreUnavailable
from keryx.gateway.desk import Desk
from keryx.gateway.expiry import EXPIRE_SECONDS
from keryx.gateway.supervisor import Gateway
from keryx.ids import Ids
from keryx.platforms.adapter import Outgoing
from keryx.store.database import Database, T, Tx
from keryx.store.statements import TOPICS, Topic
from keryx.testing.faults import Crash
from keryx.testing.platform import FakePlatform
from keryx.testing.simulator.adapter import PlacedAdapter, is_growing
from keryx.testing.simulator.loop import Process, VirtualLoop, outside
from keryx.testing.simulator.script import Effects, ScriptedAgent
from keryx.testing.simulator.store import NOTICED_AFTER_SECONDS, ProcessStore, done_at_once
from keryx.tools.tool import Toolbox
from keryx.transactions.pair_stranger import PairingOffered, approve_pairing, offer_pairing
from keryx.transactions.program_session import enter_store
from keryx.values import dataclass
from keryx.views.fates import EndedTurn, count_unsettled, list_deliveries, list_ended, next_probe_at
from keryx.views.nodes import show_nodes

How = Literal["kill", "freeze", "exception"]
HOWS: Final[tuple[How, ...]] = get_args(How)
RESTART_SECONDS = 1.5
FROZEN_SECONDS = 50.0
"""Longer than a lease."""
AFTER_THAW_SECONDS = 5.0
EXPIRED_AFTER_SECONDS = EXPIRE_SECONDS + 2.0
"""How long it takes at most until somebody sees that the time for an answer is over."""
LOOK_SECONDS = 5.0
"""How often gateways look for what comes due without a commit: seldom, because most looks find nothing."""
ITEMS_MAX = 10_000
PLACES_MAX = 50_000
EPOCH: Micros = 1_790_000_000 * SECOND


SETTINGS = Settings(welcome=None, toolsets=ToolsetSettings(by_role={"member": frozenset({ALL})}))


class Runaway(KeyboardInterrupt):
    """Far too much happens; of the kind that asyncio lets through, because nobody in the world may go on."""


class Place(NamedTuple):
    """Where something may happen: a number in the order of the run, whose it is, and what it is."""

    no: int
    process: str
    what: str


class Event(NamedTuple):
    """What happens at a place; with ``statement``, right before that statement of the transaction."""

    how: How
    statement: int | None = None


Plan = Callable[[Place], Event | None]


class SimulatedClock:
    """Virtual time as the store and the gateways see it; it never goes back, and the wall clock may be moved."""

    def __init__(self) -> None:
        self._start = EPOCH
        self._loop: VirtualLoop | None = None
        self.offset: Micros = 0

    def restart(self) -> None:
        """Begin again as on the first day."""
        self._start, self._loop, self.offset = EPOCH, None, 0

    def follow(self, loop: VirtualLoop) -> None:
        """Go on with the time of another loop, an hour later."""
        self._start += self._passed + HOUR
        self._loop = loop

    def now(self) -> Micros:
        """Wall time."""
        return self._start + self.offset + self._passed

    def monotonic(self) -> Micros:
        """Lease time."""
        return self._start - EPOCH + self._passed

    def boot_id(self) -> str:
        """There is one machine, and it is never switched off."""
        return "simulated"

    @property
    def _passed(self) -> Micros:
        return 0 if self._loop is None else int(self._loop.time() * SECOND)


@dataclass(slots=True)
class Node:
    """A gateway as a process."""

    process: Process
    gateway: Gateway
    is_leaving: bool = False


@dataclass(slots=True, kw_only=True)
class World:
    """Everything there is."""

    loop: VirtualLoop
    clock: SimulatedClock
    real: Database
    ids: Ids
    platform: FakePlatform = field(default_factory=FakePlatform)
    settings: Settings = SETTINGS
    plan: Plan = lambda _: None
    restarts: bool = True
    """Whether who dies is started again."""
    effects: Effects = field(default_factory=Effects)
    places: list[Place] = field(default_factory=list)
    statements: dict[int, list[str]] = field(default_factory=dict)
    """What ran in a transaction, by the number of the place before it."""
    wakes: Random = field(default_factory=lambda: Random(0))
    """In which order those wake who wait for the same: the seed decides, and nothing else."""
    ends: dict[int, EndedTurn] = field(default_factory=dict)
    """Every turn that is over, with the surfaces that showed its conversation when it ended."""
    ended_before: int = 0
    """A turn up to which all are known."""
    undone: Counter[str] = field(default_factory=Counter)
    """How often each chat said ``/undo``."""
    retried: Counter[str] = field(default_factory=Counter)
    """How often people asked for another answer, by chat."""
    breaches: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    stores: list[ProcessStore] = field(default_factory=list)
    tasks: "list[asyncio.Task[None]]" = field(default_factory=list)
    _restarted: int = 0
    _asking: int = 0
    _is_looking: bool = False
    _statement: int | None = None
    _how: How = "kill"
    _seen: list[str] = field(default_factory=list)

    def hook(self, name: str) -> None:
        """Be told of a statement that is about to run; the store is opened with this."""
        if self._is_looking:
            return
        self._seen.append(name)
        if self._statement is None or len(self._seen) != self._statement:
            return
        self._statement = None
        if self._how == "exception":
            raise StoreUnavailable(f"planned before {name}")
        raise Crash(f"planned before {name}")

    def in_order(self, waiting: list[T]) -> list[T]:
        """Return those who wait for the same in the order in which they wake."""
        return self.wakes.sample(waiting, len(waiting))

    def look(self, work: Awaitable[T]) -> T:
        """Return something from the store, as nobody in particular."""
        self._is_looking = True
        try:
            return done_at_once(_awaited(work))
        finally:
            self._is_looking = False

    def let_in(self, *users: str) -> None:
        """Let people speak on the platform."""

        def admit(tx: Tx) -> None:
            owner = enter_store(tx, person_id=None)
            for user in users:
                offer = offer_pairing(tx, self.platform.source(user), self.ids)
                assert isinstance(offer, PairingOffered), offer
                approve_pairing(tx, offer.request_no, by=owner.id)

        self.look(self.real.write(admit))

    # ---------------------------------------------------------------------------------------- processes

    def start(self, name: str) -> Node:
        """Start a gateway."""
        process = Process(name)
        store = ProcessStore(process, self.real, self)
        self.stores.append(store)

        async def place(what: str) -> None:
            await self.before(process, what)

        agent = ScriptedAgent(self.effects, place)
        desk = Desk(
            database=store,
            settings=self.settings,
            ids=self.ids,
            clock=self.clock,
            holder=name,
            platforms=frozenset({self.platform.name}),
            look_seconds=LOOK_SECONDS,
        )
        adapter = PlacedAdapter(self.platform, process, self)
        node = Node(process, Gateway(desk, agent, Toolbox(agent.tools()), [adapter]))
        self.nodes.append(node)
        self.tasks.append(process.spawn(self._live(node)))
        return node

    async def _live(self, node: Node) -> None:
        """Be a process: whatever ends it but its own wish is a breach."""
        try:
            await node.gateway.start()
            await node.gateway.wait()
        except asyncio.CancelledError:
            raise
        except StoreUnavailable:
            pass  # a store that is away when it starts: whoever started it sees that, and starts it again
        except Exception as error:  # noqa: BLE001 - recorded, not hidden
            self.breaches.append(f"{node.process.name} ended by itself: {error!r}")
        if not node.is_leaving and node.process.state == "alive":
            self._bury(node.process)

    async def leave(self, node: Node) -> None:
        """Let a gateway drain and end, as SIGTERM does."""
        node.is_leaving = True

        async def drain() -> None:
            await node.gateway.stop(seconds=3)
            self._bury(node.process)

        self.tasks.append(node.process.spawn(drain()))

    def _bury(self, process: Process) -> None:
        process.kill()
        if self.restarts:
            self._restarted += 1
            name = f"restarted-{self._restarted}"
            self.loop.call_later(RESTART_SECONDS, self.start, name, context=outside())

    @property
    def alive(self) -> list[Node]:
        """The gateways that run now."""
        return [node for node in self.nodes if node.process.state == "alive" and not node.is_leaving]

    # ---------------------------------------------------------------------------------------- places

    async def before(self, process: Process, what: str) -> None:
        """Let happen what is planned before a call."""
        place = self._note(process, what)
        event = self.plan(place)
        self._seen = self.statements[place.no] = []
        self._statement = None
        if event is None:
            return
        if event.statement is not None:
            self._statement, self._how = event.statement, event.how
            return
        await self._let_happen(process, event.how, what)

    async def after(self, process: Process, what: str) -> None:
        """Let happen what is planned after a call, before its caller learns of it."""
        event = self.plan(self._note(process, f"after {what}"))
        if event is not None and event.how != "exception":
            await self._let_happen(process, event.how, what)

    async def _let_happen(self, process: Process, how: How, what: str) -> None:
        match how:
            case "kill":
                await self.die(process)
            case "freeze":
                process.freeze()
                self.loop.call_later(FROZEN_SECONDS, process.thaw, context=outside())
                await asyncio.sleep(0)
            case "exception":
                raise _fault(what)

    async def die(self, process: Process) -> None:
        """Let a process die where it is: nothing of it goes on, so this never returns."""
        self._bury(process)
        await asyncio.get_running_loop().create_future()

    def committed(self, by: ProcessStore, wakes: Collection[Topic]) -> None:
        """Tell the stores of all processes about a commit; only its own knows what there may be to do by it."""
        self._note_turns()
        for store in self.stores:
            if store is by:
                store.notice(wakes, after_seconds=0.0)
            elif store.process.state != "dead":
                store.notice(TOPICS, after_seconds=NOTICED_AFTER_SECONDS)

    def _note_turns(self) -> None:
        """Look, at each commit that ends a turn, where its conversation is shown just then."""
        done = set(self._seen)
        self._asking += ("turns.wait" in done) - ("turns.go_on" in done)
        if "turns.end" not in done:
            return
        after = self.ended_before
        for end in self.look(self.real.read(lambda tx: list_ended(tx, after=after))):
            self.ends.setdefault(end.id, end)
        while self.ended_before + 1 in self.ends:
            self.ended_before += 1

    def note_sender(self, process: Process, outgoing: Outgoing) -> None:
        """See that who begins to send has the account: another's breach cannot be seen at the platform later.

        And that there may be somebody where it is sent; a preview is written to who has just spoken.
        """
        to = outgoing.to
        nodes, probe_at = self.look(self.real.read(lambda tx: (show_nodes(tx), next_probe_at(tx, to))))
        for account in nodes.accounts:
            if account.platform == self.platform.name and account.holder != process.name:
                self.breaches.append(f"{process.name} sends, and {account.holder} has the account")
        # The wall clock may have been set back a little since it was claimed.
        if probe_at is not None and probe_at > self.clock.now() + HOUR // 2 and not is_growing(outgoing):
            self.breaches.append(f"{process.name} sends to {to.chat_id}, which is known to be dead")

    def _note(self, process: Process, what: str) -> Place:
        place = Place(len(self.places), process.name, what)
        self.places.append(place)
        if place.no >= PLACES_MAX:
            raise Runaway(f"{[f'{each.process} {each.what}' for each in self.places[-12:]]}")
        return place

    # ---------------------------------------------------------------------------------------- the end

    async def settle(self, *, within_seconds: float = 3_000.0, but: Collection[str] = ()) -> None:
        """Wait until nothing is under way any more, ``but`` what is to be said in these chats.

        A breach where that never comes. Nobody answers questions any more, so a day passes where one waits.
        """
        give_up_at = self.loop.time() + within_seconds
        thawed_at = -AFTER_THAW_SECONDS
        skipped_at = -EXPIRED_AFTER_SECONDS
        while self.loop.time() < give_up_at:
            await asyncio.sleep(2.0)
            if any(node.process.state == "frozen" for node in self.nodes):
                thawed_at = self.loop.time()
            elif self.loop.time() - thawed_at < AFTER_THAW_SECONDS or self.platform.is_waiting:
                continue  # what a gateway does that comes back late must be seen
            elif not self._count_unsettled(but):
                return
            elif self._asking and self.loop.time() - skipped_at >= EXPIRED_AFTER_SECONDS:
                self.clock.offset += DAY
                skipped_at = self.loop.time()
        self.breaches.append(f"{self._count_unsettled(but)} items or deliveries never ended")

    def _count_unsettled(self, but: Collection[str]) -> int:
        name = self.platform.name
        unsettled = self.look(self.real.read(lambda tx: count_unsettled(tx, platform=name)))
        if not but or not unsettled:
            return unsettled
        said = self.look(self.real.read(lambda tx: list_deliveries(tx, platform=name, limit=ITEMS_MAX)))
        return unsettled - sum(each.chat_id in but and each.state in ("ready", "sending") for each in said)

    async def end(self) -> None:
        """End everything, whatever state it is in."""
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


def _fault(what: str) -> Exception:
    if what in ("read", "write"):
        return StoreUnavailable("planned: the store is away for a moment")
    if what in ("receive", "acknowledge", "send", "edit"):
        return ConnectionResetError("planned: the platform hung up")
    return RuntimeError(f"planned: {what}")


async def _awaited(work: Awaitable[T]) -> T:
    return await work
