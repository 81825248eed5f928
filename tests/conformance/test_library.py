"""A program does with conversations what the product does."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import keryx
from keryx.clock import DAY, SECOND
from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.config_load.program import settings_of_program
from keryx.core.conversations.rules.message import text_message
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.transactions.branch_session import Branched, NothingToRedo, NothingToUndo
from keryx.core.conversations.transactions.program_sessions import enter_store
from keryx.core.conversations.views.session_list import SessionCount
from keryx.core.people.tables import access, people
from keryx.core.search.indexing.indexer import Indexer
from keryx.core.turns.transactions.accept_message import Accepted, accept_message
from keryx.errors import (
    InvalidValue,
    NotAllowed,
    NotFound,
    SessionBusy,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from keryx.ids import Ids
from keryx.library.client import Keryx
from keryx.library.sync import KeryxSync
from keryx.store.database import Database, Tx
from keryx.store.opening import open_database
from keryx.testing.builders import inbound
from keryx.testing.clock import FakeClock
from tests.conformance.talk import FAMILY, PHONE, Talk

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kx(store_address: str, clock: FakeClock, ids: Ids) -> AsyncIterator[Keryx]:
    async with keryx.open(store_address, clock=clock, ids=ids) as opened:
        yield opened


async def texts(kx: Keryx, session_id: str) -> list[str]:
    return [message.text for message in await kx.transcript(session_id, last=None)]


async def test_the_example_of_the_manual_holds(kx: Keryx) -> None:
    session = await kx.create_session(platform="local", title="Trip to Rome")
    await kx.append(session.id, role="user", text="Where were we?")
    call = {"id": "c1", "name": "find", "arguments": {"what": "hotel"}}
    await kx.append(session.id, role="assistant", text="At the hotel.", tool_calls=[call], input_tokens=12)
    messages = await kx.transcript(session.id, last=50)
    assert [(message.seq, message.role, message.text) for message in messages] == [
        (1, "user", "Where were we?"),
        (2, "assistant", "At the hotel."),
    ]
    assert [message["content"] for message in await kx.conversation(session.id)] == [
        "Where were we?",
        "At the hotel.",
        "No result was kept.",
    ]
    result = await kx.search("hotel", limit=20, source="local")
    [hits] = result.sessions
    assert (hits.session_id, hits.title, hits.count, hits.hits[0].seq) == (session.id, "Trip to Rome", 1, 2)
    page = await kx.list_sessions(limit=50, after=None)
    assert ([row.id for row in page.rows], page.next) == ([session.id], None)
    assert await kx.count(source="telegram") == SessionCount(sessions=0, messages=0)
    assert isinstance(await kx.undo(session.id, turns=1), Branched)
    child = await kx.fork(session.id, at=0)
    assert child.message_count == 0
    assert await kx.close_session(session.id, reason="done")
    closed = await kx.get_session(session.id)
    assert (closed.state, closed.close_reason, closed.closed_at is not None) == ("closed", "done", True)
    assert (closed.input_tokens, closed.tool_call_count, closed.message_count) == (12, 1, 0)


async def test_what_was_written_is_found_at_once_and_after_indexing(kx: Keryx) -> None:
    session = await kx.create_session()
    await kx.append(session.id, role="user", text="the blue hotel")
    before = await kx.search("blue")
    await kx.wait_indexed()
    after = await kx.search("blue", session_id=session.id, order="best", neighbours=0)
    assert before.sessions[0].session_id == after.sessions[0].session_id == session.id
    assert await kx.verify_index() == ()
    await kx.rebuild_index()
    assert await kx.verify_index() == ()
    assert (await kx.search("blue")).sessions == before.sessions


async def test_lists_can_be_narrowed(kx: Keryx, clock: FakeClock) -> None:
    old = await kx.create_session(title="Old", project="Italy")
    clock.advance(100 * SECOND)
    new = await kx.create_session(title="New", platform="telegram", project="Italy")
    await kx.tag(new.id, "rome")

    async def ids(**where: object) -> list[str]:
        page = await kx.list_sessions(**where)  # type: ignore[arg-type]
        return [row.id for row in page.rows]

    assert await ids(project="Italy") == [new.id, old.id]
    assert await ids(source="telegram") == await ids(tag="rome") == [new.id]
    assert await ids(active_within=timedelta(seconds=99)) == [new.id]
    assert await kx.untag(new.id, "rome")
    assert await ids(tag="rome") == []
    assert await kx.archive(old.id)
    assert await ids() == [new.id]
    assert await ids(archived=True) == [old.id]


async def test_a_session_is_changed_and_changed_back(kx: Keryx) -> None:
    session = await kx.create_session()
    assert await kx.rename(session.id, "Rome")
    assert await kx.pin(session.id)
    assert not await kx.pin(session.id)
    assert await kx.pin(session.id, pinned=False)
    assert await kx.delete(session.id)
    assert (await kx.list_sessions()).rows == ()
    assert await kx.restore(session.id)
    [row] = (await kx.list_sessions()).rows
    assert row.title == "Rome"


async def test_undo_redo_edit_and_versions_are_views(kx: Keryx) -> None:
    session = await kx.create_session()
    assert isinstance(await kx.undo(session.id), NothingToUndo)
    assert isinstance(await kx.redo(session.id), NothingToRedo)
    await kx.append(session.id, role="user", text="a")
    await kx.append(session.id, role="assistant", text="b")
    edited = await kx.edit(session.id, 1, text="A")
    assert await texts(kx, session.id) == ["A"]
    assert {seq: each.label for seq, each in (await kx.versions(session.id)).items()} == {0: "2/2"}
    await kx.switch_branch(session.id, 0)
    assert await texts(kx, session.id) == ["a", "b"]
    await kx.switch_branch(session.id, edited.branch_no)
    assert isinstance(await kx.redo(session.id), Branched)
    assert await texts(kx, session.id) == ["a", "b"]


async def test_several_messages_are_appended_together(kx: Keryx) -> None:
    session = await kx.create_session()
    appended = await kx.append_all(session.id, [text_message("user", "a"), text_message("assistant", "b")])
    assert [each.seq for each in appended] == [1, 2]
    assert await texts(kx, session.id) == ["a", "b"]


async def test_the_same_source_is_the_same_session(kx: Keryx) -> None:
    first, again = await kx.session_for(PHONE), await kx.session_for(PHONE)
    assert first.id == again.id
    assert first.key == "agent:main:telegram:dm:7"
    await kx.close_session(first.id)
    assert (await kx.session_for(PHONE)).id != first.id


async def test_a_program_has_the_keys_and_resets_of_the_gateway_with_the_same_settings(
    store_address: str, clock: FakeClock, ids: Ids
) -> None:
    said: dict[str, str | int] = {
        "scope.dm": "person",
        "reset.mode": "idle",
        "reset.idle_minutes": 60,
        "timezone": "Europe/Berlin",
    }
    async with keryx.open(store_address, profile="work", settings=said, clock=clock, ids=ids) as kx:
        first = await kx.session_for(PHONE)
        assert first.key == f"agent:work:person:{kx.person.id}"
        on_discord = replace(PHONE, platform="discord", chat_id="9")
        assert (await kx.session_for(on_discord)).id == first.id
        clock.advance(DAY)
        fresh = await kx.session_for(PHONE)
        assert (fresh.id != first.id, fresh.key) == (True, first.key)
        assert (await kx.get_session(first.id)).close_reason == "reset"


async def test_session_for_opens_the_session_that_a_message_enters(
    database: Database, store_address: str, clock: FakeClock, ids: Ids
) -> None:
    settings = settings_of_program({"scope.dm": "platform"}, profile="work")

    def hear(tx: Tx) -> str:
        owner = enter_store(tx, person_id=None)
        access.add_identity(tx, PHONE, person_id=owner.id, user_id="7")
        heard = accept_message(tx, inbound("hi", source=PHONE), settings=settings, ids=ids, commands=COMMANDS)
        assert isinstance(heard, Accepted)
        return heard.session_id

    session_id = await database.write(hear)
    async with keryx.open(
        store_address, profile="work", settings={"scope.dm": "platform"}, clock=clock, ids=ids
    ) as kx:
        found = await kx.session_for(PHONE)
        assert (found.id, found.key) == (session_id, "agent:work:telegram:dm")


@pytest.mark.parametrize(
    ("profile", "settings", "message"),
    [
        ("Work!", {}, "profile: the profile name 'Work!' is not valid"),
        (None, {"scope.dm": "everybody"}, r"settings: scope\.dm: 'everybody' .*person"),
        (None, {"scope.direct": "chat"}, r"settings: there is no setting 'scope\.direct'"),
        (None, {"turns_max": 3}, r"cannot set turns_max; it can set scope, reset, timezone"),
    ],
)
async def test_a_wrong_setting_of_a_program_is_refused_before_the_store_is_opened(
    tmp_path: Path, profile: str | None, settings: dict[str, str | int], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        async with keryx.open(tmp_path / "keryx.db", profile=profile, settings=settings):
            pass
    assert not await asyncio.to_thread((tmp_path / "keryx.db").exists)


async def test_usage_overview_context_and_feed_are_returned(kx: Keryx) -> None:
    session = await kx.create_session(title="Rome", workspace="/w", model="big")
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    at = int(moment.timestamp()) * SECOND
    await kx.append(session.id, role="assistant", text="a", output_tokens=5, created_at=at)
    usage = await kx.usage(since=moment, until=moment + timedelta(days=1), session_id=session.id)
    assert (usage.total.output_tokens, list(usage.models)) == (5, ["big"])
    with pytest.raises(InvalidValue, match="has no time zone"):
        await kx.usage(since=moment.replace(tzinfo=None), until=moment)
    assert (await kx.overview()).turns == ()
    context = await kx.context(session.id, platforms=frozenset({"telegram"}))
    assert (context.title, context.workspace, context.platforms) == ("Rome", "/w", frozenset({"telegram"}))
    events = await kx.feed()
    while len(events) < 2:
        # On PostgreSQL a fact is shown once no older transaction runs, and the indexer may be in one.
        events = await kx.feed()
    assert [event.kind for event in events] == ["session.opened", "message"]
    assert await kx.feed(str(events[0].position)) == await kx.feed(events[0].position) == events[1:]


async def test_a_session_with_a_running_turn_is_busy(
    database: Database, ids: Ids, store_address: str
) -> None:
    talk = await Talk.begin(database, ids)
    session_id = await talk.session()
    await talk.ask(session_id, "Why?", ref="1")
    async with keryx.open(store_address, clock=FakeClock()) as kx:
        await kx.append(session_id, role="user", text="still free")
        await talk.turn(session_id)
        with pytest.raises(SessionBusy):
            await kx.append(session_id, role="user", text="too late")


async def test_a_program_acts_for_the_owner_or_another_person(
    kx: Keryx, database: Database, store_address: str
) -> None:
    assert kx.person.role == "owner"
    mine = await kx.create_session(title="Mine")
    ben = await database.write(lambda tx: people.add_person(tx, name="Ben", role="member"))
    async with keryx.open(store_address, person=ben.id) as theirs:
        assert theirs.person == ben
        with pytest.raises(NotFound):
            await theirs.get_session(mine.id)
        with pytest.raises(NotFound):
            await theirs.append(mine.id, role="user", text="let me in")
        with pytest.raises(NotAllowed):
            await theirs.session_for(FAMILY)
        assert (await theirs.session_for(PHONE)).owner_id == ben.id
    with pytest.raises(NotFound):
        await kx.session_for(PHONE)
    with pytest.raises(NotFound):
        async with keryx.open(store_address, person=99):
            pass


async def test_acting_for_a_blocked_person_is_refused(database: Database) -> None:
    def blocked(tx: Tx) -> int:
        enter_store(tx, person_id=None)
        ben = people.add_person(tx, name="Ben", role="guest")
        access.block(tx, ben.id)
        return ben.id

    person_id = await database.write(blocked)
    with pytest.raises(NotAllowed, match="blocked"):
        await database.write(lambda tx: enter_store(tx, person_id=person_id))


async def test_an_invalid_session_id_is_refused(kx: Keryx) -> None:
    for wrong in ("", "x", "20260101_000000_\x00", "../../etc/passwd"):
        with pytest.raises(InvalidValue):
            await kx.transcript(wrong)
        with pytest.raises(InvalidValue):
            await kx.append(wrong, role="user", text="a")


async def test_pop_returns_what_it_takes_back_across_a_fork(kx: Keryx) -> None:
    session = await kx.create_session()
    assert await kx.pop(session.id) is None
    await kx.append_all(session.id, [text_message("user", text) for text in "abc"])
    fork = await kx.fork(session.id, at=2)
    await kx.append(fork.id, role="user", text="d")
    popped = [await kx.pop(fork.id) for _ in range(4)]
    assert [None if message is None else message.text for message in popped] == ["d", "b", "a", None]
    assert await texts(kx, session.id) == ["a", "b", "c"]
    await kx.clear(session.id)
    assert await texts(kx, session.id) == []
    await kx.clear(session.id)


def test_a_program_without_a_loop_makes_the_same_calls(
    store_address: str, clock: FakeClock, ids: Ids
) -> None:
    with keryx.open_sync(store_address, clock=clock, ids=ids) as kx:
        assert isinstance(kx, KeryxSync)
        session = kx.create_session(title="Trip")
        kx.append(session.id, role="user", text="hello")
        assert [message.text for message in kx.transcript(session.id)] == ["hello"]
        lines = list(kx.export(session.id))
        [copy] = kx.import_lines(lines)
        assert kx.count() == SessionCount(sessions=2, messages=2)
        assert kx.get_session(copy).title == "Trip"
        assert kx.person.role == "owner"
        with pytest.raises(NotFound):
            kx.get_session("20260101_000000_00000000")


def test_every_call_waits_in_the_sync_library() -> None:
    def calls(kind: type) -> set[str]:
        return {name for base in kind.__mro__ for name in vars(base) if not name.startswith("_")}

    assert calls(KeryxSync) - calls(Keryx) == {"keryx", "run"}
    assert calls(Keryx) <= calls(KeryxSync)


def test_a_store_that_cannot_be_opened_leaves_nothing_running(tmp_path: object) -> None:
    with pytest.raises(InvalidValue), keryx.open_sync("mysql://x"):
        pass


class Faults:
    """Raises, once, before the next statement about the index."""

    def __init__(self) -> None:
        self._error: Exception | None = None

    def plant(self, error: Exception) -> None:
        self._error = error

    @property
    def is_planted(self) -> bool:
        return self._error is not None

    def __call__(self, name: str) -> None:
        if self._error is not None and name.startswith("search_"):
            error, self._error = self._error, None
            raise error


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
async def faulty(store_address: str, clock: FakeClock, ids: Ids, faults: Faults) -> AsyncIterator[Keryx]:
    database = open_database(store_address, clock=clock, hook=faults)
    person = await database.write(lambda tx: enter_store(tx, person_id=None))
    indexer = Indexer(database, store_address)
    await indexer.caught_up()
    yield Keryx(database, person, ids=ids, indexer=indexer, settings=Settings())
    await indexer.stop()
    await database.close()


async def test_a_search_that_meets_a_damaged_index_discards_it(faulty: Keryx, faults: Faults) -> None:
    session = await faulty.create_session()
    await faulty.append(session.id, role="user", text="hotel")
    await faulty.wait_indexed()
    faults.plant(StoreCorrupt("the index is damaged"))
    assert (await faulty.search("hotel")).sessions[0].session_id == session.id
    assert not faults.is_planted
    await faulty.wait_indexed()
    assert await faulty.verify_index() == ()


async def test_the_indexer_rebuilds_a_damaged_index(faulty: Keryx, faults: Faults) -> None:
    session = await faulty.create_session()
    await faulty.append(session.id, role="user", text="hotel")
    faults.plant(StoreCorrupt("the index is damaged"))
    await faulty.wait_indexed()
    assert not faults.is_planted
    assert (await faulty.search("hotel")).sessions[0].session_id == session.id
    assert await faulty.verify_index() == ()


async def test_an_index_that_cannot_be_written_is_retried_later(faulty: Keryx, faults: Faults) -> None:
    session = await faulty.create_session()
    faults.plant(StoreUnavailable("the disk is full"))
    with pytest.raises(StoreUnavailable):
        await faulty.wait_indexed()
    await faulty.append(session.id, role="user", text="hotel")
    await faulty.wait_indexed()
    assert await faulty.verify_index() == ()


async def test_a_large_backlog_is_indexed_without_a_pause_of_the_writes(kx: Keryx) -> None:
    session = await kx.create_session()
    await kx.append_all(session.id, [text_message("user", "word")] * 300)
    await kx.append(session.id, role="user", text="more")
    await kx.wait_indexed()
    assert await kx.verify_index() == ()


async def test_a_wait_for_the_index_of_a_closed_store_fails(database: Database, store_address: str) -> None:
    indexer = Indexer(database, store_address)
    await indexer.stop()
    with pytest.raises(StoreError, match="no longer kept"):
        await indexer.caught_up()


async def test_a_source_is_checked_before_anything_is_opened(kx: Keryx) -> None:
    with pytest.raises(InvalidValue):
        await kx.session_for(Source(platform="BAD NAME", chat_id="1", chat_type="dm"))
