"""Deliberately broken variants: the suite must catch each of them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from keryx.core.accounts.transactions import take_connector
from keryx.core.conversations.rules.message import text_message
from keryx.core.conversations.rules.session_key import ScopeSettings
from keryx.core.conversations.transactions.append_message import append_held
from keryx.core.deliveries.rules.delivery import Unknown
from keryx.core.deliveries.transactions.claim_deliveries import claim_deliveries, record_delivery
from keryx.core.turns.transactions.accept_message import Duplicate
from keryx.core.turns.transactions.record_step import record_calls, start_call
from keryx.errors import KeryxError, LeaseLost
from keryx.store.opening import open_database
from keryx.store.statements import load
from keryx.testing.builders import call_message, dm
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage, statement

Story = Callable[[Stage], Awaitable[None]]


async def an_exchange(stage: Stage) -> None:
    session_id = await stage.exchange("one", "re one")
    await stage.exchange("two", "re two")
    assert await stage.texts(session_id) == ["one", "re one", "two", "re two"]


async def a_redelivery(stage: Stage) -> None:
    await stage.accept("one", ref="1")
    stage.clock.advance(1)
    assert isinstance(await stage.hear("one", ref="1"), Duplicate)


async def a_late_holder(stage: Stage) -> None:
    await stage.accept("one")
    late = await stage.begin(holder="same")
    await stage.lose_holder()
    await stage.recover()
    await stage.begin(holder="same")
    message = text_message("assistant", "late")
    with pytest.raises(LeaseLost):
        await stage.do(lambda tx: append_held(tx, late.held, message))
    with pytest.raises(LeaseLost):
        await stage.finish(late, "late")


async def a_crash(stage: Stage) -> None:
    accepted = await stage.accept("one")
    begun = await stage.begin()
    message = call_message(("c", "once"))
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    for _ in range(2):
        await stage.do(lambda tx: start_call(tx, begun.held, call_id="c"))
    await stage.lose_holder()
    await stage.recover()
    await stage.finish(await stage.begin(), "1")
    assert await stage.texts(accepted.session_id) == ["one", "1"]


async def two_people(stage: Stage) -> None:
    stage.set(scope=ScopeSettings(dm="platform"))
    await stage.meet("ben")
    ana, ben = await stage.accept("one"), await stage.accept("two", source=dm("ben"))
    assert ana.session_id != ben.session_id


async def a_lost_receipt(stage: Stage) -> None:
    for text in ("one", "two"):
        await stage.exchange(text)
    connector = await stage.do(lambda tx: take_connector(tx, platform="telegram", account="", holder="g"))
    assert connector is not None
    [delivery] = await stage.do(lambda tx: claim_deliveries(tx, connector))
    await stage.do(lambda tx: record_delivery(tx, connector, delivery.id, Unknown(), deduplicates=False))
    [first, _] = await stage.deliveries()
    assert first.maybe_repeated_at is not None
    assert await stage.do(lambda tx: claim_deliveries(tx, connector)) == []


STORIES: tuple[Story, ...] = (an_exchange, a_redelivery, a_late_holder, a_crash, two_people, a_lost_receipt)

FENCE = """ELSE lease_holder = :holder AND lease_epoch = :epoch
          AND lease_expires_at > :lease_now AND lease_boot_id = :boot_id
"""
# For each fault: the story that must catch it, and the replaced texts in statements.
FAULTS: dict[str, tuple[Story, dict[str, tuple[str, str]]]] = {
    "no fencing of appends": (
        a_late_holder,
        {
            "sessions.append": (
                FENCE,
                "ELSE (:holder = :holder OR :epoch = :lease_now OR :boot_id = '')\n",
            )
        },
    ),
    "an epoch that does not rise": (
        a_late_holder,
        {
            "leases.take": (
                "lease_epoch = lease_epoch + 1",
                "lease_epoch = MAX(lease_epoch, 1)",
            )
        },
    ),
    "a counter not updated": (
        an_exchange,
        {"sessions.append": ("message_count = message_count + 1", "message_count = message_count")},
    ),
    "tokens not added up": (
        a_crash,
        {
            "sessions.append": (
                "input_tokens = input_tokens + :input_tokens",
                "input_tokens = :input_tokens * 0",
            )
        },
    ),
    "no dedupe": (
        a_redelivery,
        {
            "inbox.find_by_ref": ("ref = :ref", "ref = :ref || '!'"),
            "inbox.add": (":account, :ref,", ":account, :ref || CAST(:now AS TEXT),"),
        },
    ),
    "a gap in the feed": (an_exchange, {"feed.next_session_no": ("feed_no + 1", "feed_no + 2")}),
    "an item that stays ready": (
        an_exchange,
        {"inbox.claim": ("SET state = 'claimed', turn_id", "SET turn_id")},
    ),
    "an item without a fate": (
        an_exchange,
        {"inbox.finish": ("WHERE id = :inbox_id", "WHERE id = -:inbox_id")},
    ),
    "a lease that is not released": (
        an_exchange,
        {"leases.release": ("lease_expires_at = 0", "lease_expires_at = lease_expires_at")},
    ),
    "a message stored twice after a crash": (
        a_crash,
        {"inbox.give_back": ("seq = CAST(:seq AS BIGINT)", "seq = NULLIF(:seq, :seq)")},
    ),
    "a once call started again": (a_crash, {"turns.start_step": ("starts = 0 OR", "starts >= 0 OR")}),
    "a turn that is never recovered": (
        a_crash,
        {"turns.list_orphans": ("t.state = 'running'", "t.state = 'asleep'")},
    ),
    "an unknown call left open": (
        a_crash,
        {"turns.end_step": ("state = :state", "state = NULLIF(state, :state)")},
    ),
    "people who receive all facts": (
        two_people,
        {"people.find_member": ("person_id = :person_id AND", "person_id >= 0 * :person_id AND")},
    ),
    "an unmarked resend": (a_lost_receipt, {"outbox.record": (":maybe_repeated = 1", ":maybe_repeated = 2")}),
    "no order at an address": (
        a_lost_receipt,
        {"outbox.list_due": ("e.state IN ('ready', 'sending')", "e.state = 'sending'")},
    ),
}


@pytest.fixture
async def stage(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Stage]:
    stage = Stage(database=open_database(tmp_path / "keryx.db", clock=clock), clock=clock)
    await stage.meet("ana")
    yield stage
    await stage.database.close()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
async def test_without_a_fault_the_story_holds(story: Story, stage: Stage) -> None:
    await story(stage)


@pytest.mark.parametrize("name", FAULTS)
async def test_a_planted_fault_is_caught(name: str, stage: Stage) -> None:
    story, replaced = FAULTS[name]
    with ExitStack() as broken:
        for statement_name, (right, wrong) in replaced.items():
            sql = load("sqlite")[statement_name].sql
            assert sql.count(right) == 1, f"{statement_name} has no {right!r} to break"
            broken.enter_context(statement(statement_name, sql.replace(right, wrong)))
        with pytest.raises((AssertionError, KeryxError, pytest.fail.Exception)):
            await story(stage)


def test_every_story_is_used() -> None:
    assert {story for story, _ in FAULTS.values()} == set(STORIES)
