"""Deliveries with faults: rate limits, rejections, dead addresses, lost receipts, broken adapters, two gateways."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from keryx.agents.agent import Answer, Brief, Stage
from keryx.clock import SECOND, SystemClock
from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.core.conversations.rules.command import Command
from keryx.core.deliveries.rules.delivery import Outcome, Unknown
from keryx.core.deliveries.tables.outbox import Delivery
from keryx.errors import NotConnected, StoreUnavailable
from keryx.gateway.gateway import Gateway
from keryx.gateway.runtime.runtime import Runtime
from keryx.ids import Ids
from keryx.platforms.adapter import Capabilities, Outgoing, Update
from keryx.store.database import Database, Tx
from keryx.store.opening import open_database
from keryx.testing.platform import FakeAdapter, FakePlatform, PlatformFault
from keryx.tools.tool import Toolbox
from tests.flow.running import Actor, gateway_of, let_in, running, said, until

T = TypeVar("T")


async def test_a_permanently_rejected_delivery_is_not_retried(
    store: Database, platform: FakePlatform
) -> None:
    tried: list[Outgoing] = []

    def refuse(outgoing: Outgoing) -> PlatformFault | None:
        tried.append(outgoing)
        return "refuse permanently" if outgoing.to.chat_id == "1" else None

    platform.before_send = refuse
    async with running(store, platform, Actor()):
        platform.say("hello")
        platform.say("and here", chat="2", user="ben")
        await until(lambda: platform.said_to("2") == ["You said: and here"])
        await until(lambda: len(tried) == 2)
    assert platform.said_to("1") == []


class Answerless:
    """A store that commits the first claim of a delivery, and reports a failure."""

    is_lost = False

    def __init__(self, store: Database) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, work: Callable[[Tx], T]) -> T:
        outcome = await self._store.write(work)
        if not self.is_lost and isinstance(outcome, list) and isinstance(next(iter(outcome), None), Delivery):
            self.is_lost = True
            raise StoreUnavailable("The outcome of a commit is not known.")
        return outcome


async def test_a_delivery_whose_claim_was_committed_without_an_answer_is_sent(
    store: Database, platform: FakePlatform
) -> None:
    answerless = Answerless(store)
    async with running(cast(Database, answerless), platform, Actor()):
        platform.say("hello")
        await until(lambda: platform.said_to("1") == ["You said: hello"])
        platform.say("and again")
        await until(lambda: platform.said_to("1") == ["You said: hello", "You said: and again"])
    assert answerless.is_lost


async def test_a_message_from_a_dead_address_makes_it_alive_again(
    store: Database, platform: FakePlatform
) -> None:
    tried: list[Outgoing] = []

    def die_once(outgoing: Outgoing) -> PlatformFault | None:
        tried.append(outgoing)
        return "dead" if len(tried) == 1 else None

    platform.before_send = die_once
    async with running(store, platform, Actor()) as gateway:
        platform.say("hello")
        await until(lambda: gateway.metrics.deliveries["failed"] == 1)  # stored: the address is dead
        platform.say("still there?")
        await until(lambda: platform.said_to("1") == ["You said: still there?"])
    assert len(tried) == 2


async def test_the_platform_s_rate_limit_is_obeyed(store: Database, platform: FakePlatform) -> None:
    faults: list[PlatformFault | None] = ["limit", None]
    platform.limit = SECOND
    platform.before_send = lambda _: faults.pop(0) if faults else None
    began = asyncio.get_running_loop().time()
    async with running(store, platform, Actor()):
        platform.say("hello")
        await until(lambda: len(platform.shown) == 1)
    assert asyncio.get_running_loop().time() - began >= 1


@dataclass
class Counter:
    """A platform's faults for each message in turn, and the times when the messages came."""

    faults: list[PlatformFault | None]
    came: list[float] = field(default_factory=list)

    def take(self, _: Outgoing) -> PlatformFault | None:
        self.came.append(asyncio.get_running_loop().time())
        return self.faults.pop(0) if self.faults else None

    @property
    def pauses(self) -> list[float]:
        return [later - earlier for earlier, later in pairwise(self.came)]


async def growing_platform(store: Database, counter: Counter) -> FakePlatform:
    """Return a platform that shows previews, ten times a second."""
    can = Capabilities(text_max=4_096, edits=True, edit_every=SECOND // 10)
    platform = FakePlatform(capabilities=can, limit=3 * SECOND // 2, before_send=counter.take)
    await let_in(store, platform, "ana")
    return platform


def speaking_until(enough: Callable[[], bool]) -> Actor:
    """Return an agent that streams until ``enough``."""

    async def speak(brief: Brief, stage: Stage) -> Answer:
        while not enough():
            await stage.say("word after word after word, ")
            await asyncio.sleep(0.02)
        return said("the end")

    return Actor(speak)


async def test_previews_wait_until_the_rate_limit_ends(store: Database) -> None:
    counter = Counter(["limit", None, "limit"])
    platform = await growing_platform(store, counter)
    async with running(store, platform, speaking_until(lambda: len(counter.came) >= 4)):
        platform.say("speak")
        await until(lambda: platform.said_to("1") == ["the end"])
    assert counter.pauses[0] >= 1.5, "the first form was limited"
    assert counter.pauses[2] >= 1.5, "a change was limited"


async def test_an_answer_waits_until_the_rate_limit_of_its_preview_ends(store: Database) -> None:
    counter = Counter([None, "limit"])
    platform = await growing_platform(store, counter)
    async with running(store, platform, speaking_until(lambda: len(counter.came) >= 2)):
        platform.say("speak")
        await until(lambda: platform.said_to("1") == ["the end"])
    assert len(counter.came) == 3
    assert counter.pauses[1] >= 1.5


async def test_a_rejected_preview_is_retried_after_growing_pauses(store: Database) -> None:
    counter = Counter(["reject"])
    platform = await growing_platform(store, counter)
    async with running(store, platform, speaking_until(lambda: len(counter.came) >= 2)):
        platform.say("speak")
        await until(lambda: platform.said_to("1") == ["the end"])
    assert counter.pauses[0] >= 2


async def test_an_edit_without_a_receipt_is_repeated_without_a_mark(store: Database) -> None:
    platform = FakePlatform(capabilities=Capabilities(text_max=4_096, edits=True, edit_every=SECOND // 10))
    await let_in(store, platform, "ana")
    lost: list[str] = []

    def lose_one_change(outgoing: Outgoing) -> PlatformFault | None:
        if platform.shown and not lost and not getattr(outgoing.piece, "text", "").endswith("…"):
            lost.append(outgoing.key)
            return "lose the receipt"
        return None

    platform.before_send = lose_one_change

    async def speak(brief: Brief, stage: Stage) -> Answer:
        for _ in range(8):
            await stage.say("word after word, ")
            await asyncio.sleep(0.2)
        return said("the end")

    async with running(store, platform, Actor(speak)):
        platform.say("speak")
        await until(lambda: len(lost) == 1 and platform.shown[0].texts.count("the end") == 2)
    assert [each.text for each in platform.shown] == ["the end"]


class BreakingAdapter(FakeAdapter):
    """Breaks the contract: it raises where it must not."""

    broken = 0

    async def send(self, outgoing: Outgoing) -> Outcome:
        await super().send(outgoing)
        if not self.broken:
            self.broken += 1
            raise ConnectionResetError
        return Unknown()

    async def receive(self) -> AsyncGenerator[Update, None]:
        if not self.broken:
            async for update in super().receive():
                yield update
        raise ConnectionResetError


async def test_a_message_of_an_adapter_that_raises_is_marked_as_possibly_repeated(
    store: Database, platform: FakePlatform
) -> None:
    adapter = BreakingAdapter(platform)
    async with gateway_of(store, [adapter], Actor()):
        platform.say("hello")
        await until(lambda: len(platform.shown) >= 1)
    assert adapter.broken == 1


class MenulessAdapter(FakeAdapter):
    """Fails to fill its menu."""

    async def offer_commands(self, commands: Sequence[Command]) -> None:
        await super().offer_commands(commands[:1])
        raise ConnectionResetError


async def test_a_platform_s_menu_is_filled_from_the_table_of_commands(store: Database) -> None:
    platform = FakePlatform(capabilities=Capabilities(text_max=100, has_menu=True))
    await let_in(store, platform, "ana")
    async with running(store, platform, Actor()):
        await until(lambda: platform.menu == [command.name for command in COMMANDS.commands])
    async with gateway_of(store, [MenulessAdapter(platform)], Actor()):
        await until(lambda: platform.menu == [COMMANDS.commands[0].name])
        platform.say("hello")
        await until(lambda: platform.said_to("1") == ["You said: hello"])


class UnreachableAdapter(FakeAdapter):
    """Fails to connect a few times."""

    refusals = 4

    async def connect(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise NotConnected("the platform is down")


async def test_an_account_is_connected_again_after_growing_pauses_with_one_log_line_each(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = open_database(str(tmp_path / "keryx.db"))
    platform = FakePlatform()
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        """Wait a hundredth of the time, and note the pauses of the account's loop."""
        task = asyncio.current_task()
        if task is not None and task.get_name() == "keryx-fake":
            pauses.append(seconds)
        await asyncio.sleep(seconds / 100)

    await let_in(database, platform, "ana")
    runtime = Runtime(
        database=database, settings=Settings(), ids=Ids(), clock=SystemClock(), holder="node-1", sleep=sleep
    )
    gateway = Gateway(runtime, Actor(), Toolbox([]), [UnreachableAdapter(platform)])
    await gateway.start()
    [account] = gateway.accounts
    assert account.trouble == "the platform is down"
    platform.say("hello")
    await until(lambda: platform.said_to("1") == ["You said: hello"])
    await until(lambda: account.trouble is None)
    await gateway.stop(seconds=1)
    await database.close()
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]
    told = [record for record in caplog.records if "the platform is down" in record.getMessage()]
    assert [hasattr(record, "error") for record in told] == [False] * 4


async def test_the_second_gateway_takes_the_account_when_the_first_releases_it(
    store: Database, platform: FakePlatform
) -> None:
    async with running(store, platform, Actor(), holder="node-1"):
        async with running(store, platform, Actor(), holder="node-2"):
            platform.say("hello")
            await until(lambda: len(platform.shown) == 1)
            platform.say("again")
            await until(lambda: len(platform.shown) == 2)
        platform.say("and again")
        await until(lambda: len(platform.shown) == 3)
    assert platform.said_to("1") == ["You said: hello", "You said: again", "You said: and again"]
