"""Retired addresses: a terminal that is gone gets no more deliveries, and its requests stay."""

import pytest

from keryx.config import Settings
from keryx.core.accounts.transactions import Connector, release_connector, take_connector
from keryx.core.accounts.views import list_platforms
from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.session_key import ScopeSettings
from keryx.core.conversations.rules.source import LOCAL_CLI, Source, one_shot_source
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import home_channels, outbox
from keryx.core.deliveries.transactions.claim_deliveries import claim_deliveries
from keryx.core.deliveries.transactions.retire_address import GONE
from keryx.core.turns.views.pending_work import needs_recovery
from keryx.core.turns.views.terminal import ViewCursor, show_terminal
from keryx.core.turns.views.terminal_session import LocalChat
from keryx.ids import Ids
from keryx.store.codec import to_json
from keryx.store.database import Database, Tx
from keryx.store.opening import open_database
from keryx.testing.clock import FakeClock
from tests.conformance.acting import ask, call
from tests.conformance.stage import Meanwhile, Stage

PRINT = one_shot_source("one")
WEB = Source(platform="web", chat_id="browser", chat_type="dm")


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage(database=database, clock=clock)


async def arrive(stage: Stage, place: Source = PRINT) -> Connector:
    connector = await stage.do(
        lambda tx: take_connector(tx, platform="local", account=place.account or "", holder="print")
    )
    assert connector is not None
    return connector


async def leave(stage: Stage, connector: Connector) -> int:
    await stage.do(lambda tx: release_connector(tx, connector))
    return (await stage.recover()).addresses


def _say_to_nobody(tx: Tx) -> None:
    outbox.add_delivery(tx, (TextPart(text="nobody reads it"),), to=Address.of(PRINT), key="k")


async def key_count(stage: Stage) -> int:
    return len(await stage.rows("SELECT key FROM session_keys"))


async def test_the_conversation_is_closed_and_can_be_continued(stage: Stage) -> None:
    connector = await arrive(stage)
    assert (await stage.recover()).addresses == 0
    session_id = await stage.exchange("about Rome", source=PRINT)
    assert await stage.look(list_platforms) == ["local"]
    assert not await stage.look(needs_recovery)
    await stage.do(lambda tx: release_connector(tx, connector))
    assert await stage.look(needs_recovery)
    assert bool(await stage.recover())
    assert not await stage.look(needs_recovery)
    session = await stage.session(session_id)
    assert (session.state, session.close_reason, session.source) == ("closed", "done", LOCAL_CLI)
    assert await key_count(stage) == 0
    assert await stage.rows("SELECT account FROM connector_leases") == []
    assert (await stage.accept("/resume about Rome", source=LOCAL_CLI)).session_id == session_id
    await stage.exchange("and Ostia", source=LOCAL_CLI)
    assert [each.address for each in await stage.deliveries("local") if each.state == "ready"] == [
        "local:cli",
        "local:cli",
    ]


async def test_unsent_deliveries_end_with_the_reason(stage: Stage) -> None:
    connector = await arrive(stage)
    await stage.accept("/title", source=PRINT)
    await stage.do(lambda tx: claim_deliveries(tx, connector))
    await stage.exchange("hello", source=PRINT)
    assert await leave(stage, connector) == 1
    told = await stage.deliveries("local")
    assert [(each.state, each.error) for each in told] == [("unknown", GONE), ("dead", GONE)]


async def test_unsent_deliveries_without_a_session_end_too(stage: Stage) -> None:
    connector = await arrive(stage)
    await stage.do(_say_to_nobody)
    assert await leave(stage, connector) == 1
    assert [each.state for each in await stage.deliveries("local")] == ["dead"]


async def test_an_open_question_is_answered_at_the_terminal(stage: Stage) -> None:
    connector = await arrive(stage)
    accepted = await stage.accept("remember tea", source=PRINT)
    begun = await stage.begin()
    await call(stage, begun, ("c", "ask"))
    await ask(stage, begun)
    assert await leave(stage, connector) == 1
    await stage.accept(f"/resume {accepted.session_id}", source=LOCAL_CLI)
    await stage.accept("/approve", source=LOCAL_CLI)
    await stage.finish(await stage.begin(), "Kept.")
    answers = [each for each in await stage.deliveries("local") if each.kind in ("reply", "copy")]
    assert [(each.address, each.kind) for each in answers] == [("local:cli", "reply")]


async def test_a_waiting_message_is_answered_at_the_terminal(stage: Stage) -> None:
    connector = await arrive(stage)
    await stage.accept("hello", source=PRINT)
    await stage.accept("/new", source=PRINT)
    assert await leave(stage, connector) == 1
    await stage.finish(await stage.begin(), "Good day.")
    assert ("local:cli", "Good day.") in await stage.said("local")


async def test_a_conversation_with_another_surface_stays_open(stage: Stage) -> None:
    session_id = await stage.exchange("about Rome", source=LOCAL_CLI)
    connector = await arrive(stage)
    await stage.accept("/resume about Rome", source=PRINT)
    await stage.exchange("and Ostia", source=PRINT)
    assert await leave(stage, connector) == 1
    assert (await stage.session(session_id)).state == "open"
    assert await key_count(stage) == 1


async def test_a_place_without_messages_needs_no_cleanup(stage: Stage) -> None:
    assert await leave(stage, await arrive(stage)) == 1
    await arrive(stage)
    await stage.lose_holder()
    assert (await stage.recover()).addresses == 1


async def test_a_reset_during_the_cleanup_is_noticed(postgres_url: str, clock: FakeClock) -> None:
    meanwhile = Meanwhile("sessions.lock")
    slow = Stage(database=open_database(postgres_url, clock=clock, hook=meanwhile), clock=clock)
    fast = Stage(database=open_database(postgres_url, clock=clock), clock=clock, ids=Ids(seed=8))
    connector = await arrive(slow)
    await slow.exchange("hello", source=PRINT)
    meanwhile.work = lambda: fast.accept("/new", source=PRINT)
    await slow.database.write(lambda tx: release_connector(tx, connector))
    assert (await slow.recover()).addresses == 1
    assert await slow.rows("SELECT key FROM session_keys") == []
    assert await slow.rows("SELECT id FROM sessions WHERE state = 'open'") == []
    for stage in (slow, fast):
        await stage.database.close()


async def test_schedules_made_there_belong_to_the_terminal(stage: Stage) -> None:
    await arrive(stage)
    await stage.accept("/schedule add every 2h | look at the mail", source=PRINT)
    await stage.accept("/sethome", source=PRINT)
    assert [origin for (origin,) in await stage.rows("SELECT origin FROM schedules")] == [
        to_json(LOCAL_CLI.to_dict())
    ]
    assert (await stage.look(home_channels.list_homes))["local"].address == Address.of(LOCAL_CLI)


async def test_a_passing_place_has_its_own_conversation_in_every_scope(stage: Stage) -> None:
    stage.set(scope=ScopeSettings(dm="person"))
    shared = await stage.exchange("about Rome", source=WEB)
    await arrive(stage)
    own = await stage.accept("/title printed", source=PRINT)
    assert own.session_id != shared
    assert (await stage.session(shared)).title == "about Rome"
    settings = Settings(scope=ScopeSettings(dm="person"))
    seen = await stage.look(
        lambda tx: show_terminal(tx, LocalChat(source=PRINT, settings=settings), ViewCursor(after=0))
    )
    assert seen.session_id == own.session_id


async def test_a_passing_place_gets_no_welcome_and_the_next_person_does(stage: Stage) -> None:
    stage.set(welcome="Welcome!")
    await arrive(stage)
    await stage.accept("hello", source=PRINT)
    assert await stage.said("local") == []
    await stage.accept("hello", source=LOCAL_CLI)
    assert await stage.said("local") == [("local:cli", "Welcome!")]
