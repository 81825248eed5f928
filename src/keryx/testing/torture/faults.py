"""Inject faults: kill, lose and freeze gateways, restart PostgreSQL; and measure how long recovery takes.

The seed decides the plan; the exact moment of each fault depends on the machine.
"""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from typing import Final

from keryx.testing.torture.books import Asked
from keryx.testing.torture.checks import Thaw
from keryx.testing.torture.double import LOOK_SECONDS, until
from keryx.testing.torture.effects import first_begun, open_tokens
from keryx.testing.torture.fleet import Node
from keryx.testing.torture.options import LEASE_SECONDS, TAKEN_OVER_SECONDS, Options
from keryx.testing.torture.scene import Scene
from keryx.testing.torture.words import read_answer

FROZEN_SECONDS: Final = LEASE_SECONDS + 3.0
WATCHED_SECONDS: Final = 3.0
"""How long a thawed gateway is watched."""
BUSY_SECONDS: Final = 10.0
TAKEN_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = (0.3, 1.7)
"""The range of pauses between two faults."""
KILLED_EARLY: Final = 0.08
"""The probability that a gateway is killed again while it starts."""

READY = "start to ready"
TAKEN = "start to a message taken"
TAKEN_OVER = "lost to its conversations going on"
TAKEN_OVER_ACCOUNT = "lost with the account to a message taken"
OUTAGE = "PostgreSQL stopped to a message taken"


class Faults:
    """Injects the planned faults."""

    def __init__(self, scene: Scene, options: Options, tell: Callable[[str], None]) -> None:
        self._scene = scene
        self._options = options
        self._tell = tell
        self._rng = random.Random(f"{options.seed}/faults")
        self.tried: Counter[str] = Counter()
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.thaws: list[Thaw] = []
        self.breaches: list[str] = []
        """Breaches that no record shows: a gateway that does not start, conversations that do not continue."""

    async def start_all(self) -> None:
        """Start all gateways, and wait until each is ready."""
        for node in self._scene.nodes:
            await node.start()
        for node in self._scene.nodes:
            await self._note_ready(node)

    async def run(self) -> None:
        """Inject all planned faults: first the long ones, at several gateways at once, then the short ones."""
        options = self._options
        room = asyncio.Semaphore(max(1, options.gateways - 1))
        getting_over: list[asyncio.Task[None]] = []
        for strike in [self._lose] * options.losses + [self._freeze] * options.freezes:
            await room.acquire()
            task = asyncio.create_task(await strike())
            task.add_done_callback(lambda _: room.release())
            getting_over.append(task)
        await asyncio.gather(*getting_over)
        short = [self._kill] * options.kills + [self._restart] * options.restarts
        self._rng.shuffle(short)
        for work in short:
            await asyncio.sleep(self._rng.uniform(*PAUSE_SECONDS))
            await work()

    async def _kill(self) -> None:
        node = self._rng.choice(self._scene.nodes)
        async with node.lock:
            await node.kill()
            self.tried["kill -9, started again at once"] += 1
            await node.start()
            while self._rng.random() < KILLED_EARLY:
                await asyncio.sleep(self._rng.uniform(0.0, 0.6))
                await node.kill()
                self.tried["kill -9 while it started"] += 1
                await node.start()
            await self._note_ready(node)
            if self._options.gateways == 1:
                await self._note_taken(TAKEN, since=node.started_at)
        done = self.tried["kill -9, started again at once"]
        self._tell(f"{node.name} killed ({done} of {self._options.kills}), {self._last(READY)} to ready")

    async def _lose(self) -> Coroutine[None, None, None]:
        """Kill a gateway that runs a turn; the returned coroutine watches the takeover and restarts the gateway."""
        holder = await self._scene.account_holder()
        free = [node for node in self._scene.nodes if not node.lock.locked()]
        others = [node for node in free if node.holder != holder]
        node = await self._busy(others) or await self._busy(free) or self._rng.choice(free)
        await node.lock.acquire()
        pid, killed_at = node.pid, time.monotonic()
        await node.kill()
        self.tried["gateway lost for longer than the lease"] += 1
        tokens = open_tokens(self._scene.book.read(), pid=pid)
        lost = [asked for asked in self._scene.books.asked.values() if asked.token and asked.token in tokens]
        self._tell(f"{node.name} lost while it answered {', '.join(tokens) or 'nothing'}")
        # A stopped turn does not continue: chats send no ``/stop`` until the takeover has been seen.
        self._scene.load.may_stop = False

        async def get_over() -> None:
            try:
                await asyncio.gather(*(self._watch(asked, pid=pid, since=killed_at) for asked in lost))
                if node.holder == holder:
                    await self._note_taken(TAKEN_OVER_ACCOUNT, since=killed_at, seconds=TAKEN_OVER_SECONDS)
                await asyncio.sleep(max(0.0, killed_at + TAKEN_OVER_SECONDS - time.monotonic()))
                await node.start()
                await self._note_ready(node)
            finally:
                self._scene.load.may_stop = True
                node.lock.release()

        return get_over()

    async def _watch(self, lost: Asked, *, pid: int, since: float) -> None:
        """Check that a conversation continues: another process answers in it, or its lost answer is shown."""
        books, book = self._scene.books, self._scene.book

        def went_on_at() -> float | None:
            tokens = {asked.token for asked in books.asked.values() if asked.chat == lost.chat}
            shown = (
                each.at for each in books.shown if each.at >= since and lost.token in read_answer(each.text)
            )
            begun = first_begun(book.read(), tokens, after=since, other_than=pid)
            return min(shown, default=None) if begun is None else begun

        await until(lambda: went_on_at() is not None, seconds=since + TAKEN_OVER_SECONDS - time.monotonic())
        at = went_on_at()
        if at is None or at - since > TAKEN_OVER_SECONDS:
            self.breaches.append(
                f"{lost.chat} did not continue within {TAKEN_OVER_SECONDS:.0f} s after its gateway was lost"
            )
        else:
            self.seconds[TAKEN_OVER].append(at - since)

    async def _freeze(self) -> Coroutine[None, None, None]:
        """Freeze the gateway that holds the account; the returned coroutine thaws and watches it."""
        held = await self._account_at(lambda node: not node.lock.locked(), seconds=TAKEN_OVER_SECONDS)
        free = [node for node in self._scene.nodes if not node.lock.locked()]
        node = held or self._rng.choice(free)
        await self._busy([node])
        await node.lock.acquire()
        node.freeze()
        self.tried["freeze beyond the lease"] += 1
        self._tell(f"{node.name} frozen for {FROZEN_SECONDS:.0f} s")

        async def get_over() -> None:
            try:
                await asyncio.sleep(FROZEN_SECONDS)
                taken_over = await self._account_at(
                    lambda other: other is not node, seconds=TAKEN_OVER_SECONDS
                )
                at = time.monotonic()
                node.thaw()
                await asyncio.sleep(WATCHED_SECONDS)
                if taken_over is not None and await self._scene.account_holder() != node.holder:
                    self.thaws.append(Thaw(node=node.name, at=at, until=time.monotonic()))
                    self.tried["woke up after another gateway had taken over"] += 1
                self._tell(f"{node.name} thawed")
            finally:
                node.lock.release()

        return get_over()

    async def _restart(self) -> None:
        server = self._scene.server
        assert server is not None, "options without a private server ask for no restart"
        since = time.monotonic()
        await asyncio.to_thread(server.restart)
        self.tried["PostgreSQL stopped at once and started"] += 1
        await self._note_taken(OUTAGE, since=since)
        self._tell(f"PostgreSQL restarted, {self._last(OUTAGE)} to a message taken")

    async def _busy(self, among: list[Node]) -> Node | None:
        """Wait until one of these gateways runs a turn, and return it; None after a timeout."""
        busy: list[Node] = []

        def look() -> bool:
            effects = self._scene.book.read()
            busy[:] = [node for node in among if open_tokens(effects, pid=node.pid)]
            return bool(busy)

        is_found = await until(look, seconds=BUSY_SECONDS if among else 0)
        return self._rng.choice(busy) if is_found else None

    async def _account_at(self, is_wanted: Callable[[Node], bool], *, seconds: float) -> Node | None:
        """Wait until a wanted gateway holds the account, and return it; None after a timeout."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            holder = await self._scene.account_holder()
            for node in self._scene.nodes:
                if node.holder == holder and is_wanted(node):
                    return node
            await asyncio.sleep(LOOK_SECONDS)
        return None

    async def _note_ready(self, node: Node) -> None:
        if not await node.until_ready() or node.ready_at is None:
            self.breaches.append(f"{node.name} did not start; see its log")
            return
        self.seconds[READY].append(node.ready_at - node.started_at)

    async def _note_taken(self, what: str, *, since: float, seconds: float = TAKEN_SECONDS) -> None:
        left = since + seconds - time.monotonic()
        try:
            await asyncio.wait_for(self._scene.double.probe(), left)
        except TimeoutError:
            self.breaches.append(f"{what}: not within {seconds:.0f} s")
        else:
            self.seconds[what].append(time.monotonic() - since)

    def _last(self, what: str) -> str:
        return f"{self.seconds[what][-1]:.2f} s" if self.seconds[what] else "never"
