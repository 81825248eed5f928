"""Lists show what a person may see, in order, a page at a time."""

import pytest

from keryx.clock import SECOND
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.transactions import change_session, manage_project
from keryx.core.conversations.transactions.manage_project import Project, ProjectPlan
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.conversations.views.session_list import (
    SessionCount,
    SessionFilter,
    count,
    get_session,
    list_sessions,
)
from keryx.core.turns.transactions.flush_session import give_way
from keryx.errors import InvalidValue, NotFound
from keryx.ids import Ids
from keryx.store.database import Database, ReadTx
from keryx.testing.clock import FakeClock
from tests.conformance.talk import FAMILY, PHONE, Talk

pytestmark = pytest.mark.anyio


@pytest.fixture
async def talk(database: Database, ids: Ids) -> Talk:
    return await Talk.begin(database, ids)


async def listed(talk: Talk, *, limit: int = 50, person_id: int | None = None, **where: object) -> list[str]:
    """Read all pages and return the ids in order."""
    chosen = SessionFilter(**where)  # type: ignore[arg-type]
    who = talk.owner.id if person_id is None else person_id
    found: list[str] = []
    after = None
    while True:

        def read(tx: ReadTx, after: str | None = after) -> tuple[list[str], str | None]:
            page = list_sessions(tx, person_id=who, limit=limit, after=after, where=chosen)
            assert len(page.rows) <= limit
            return [row.id for row in page.rows], page.next

        rows, after = await talk.database.read(read)
        found += rows
        if after is None:
            return found


async def talks(talk: Talk, clock: FakeClock, how_many: int, source: Source = LOCAL_CLI) -> list[SessionId]:
    """Sessions with a message each, the newest activity first."""
    made: list[SessionId] = []
    for number in range(how_many):
        clock.advance(SECOND)
        made.insert(0, await talk.session(f"talk {number}", source=source))
    return made


async def test_the_last_active_session_comes_first(talk: Talk, clock: FakeClock) -> None:
    newest, middle, oldest = await talks(talk, clock, 3)
    clock.advance(SECOND)
    await talk.say(middle, "again")
    assert await listed(talk) == [middle, newest, oldest]


async def test_pinned_sessions_come_first(talk: Talk, clock: FakeClock) -> None:
    newest, middle, oldest = await talks(talk, clock, 3)
    for pinned in (oldest, middle):
        await talk.database.write(lambda tx, s=pinned: change_session.pin(tx, s, person_id=talk.owner.id))  # type: ignore[misc]
    assert await listed(talk) == [middle, oldest, newest]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
async def test_pages_of_any_size_contain_every_session_once_in_order(
    talk: Talk, clock: FakeClock, limit: int
) -> None:
    made = await talks(talk, clock, 7)
    for pinned in (made[1], made[4], made[6]):
        await talk.database.write(lambda tx, s=pinned: change_session.pin(tx, s, person_id=talk.owner.id))  # type: ignore[misc]
    expected = [made[1], made[4], made[6], made[0], made[2], made[3], made[5]]
    assert await listed(talk, limit=limit) == expected


async def test_sessions_active_at_the_same_instant_are_ordered_by_id(talk: Talk) -> None:
    made = [await talk.session("at once") for _ in range(5)]
    assert await listed(talk, limit=2) == sorted(made, reverse=True)


@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_sessions_of_several_audiences_are_merged_in_order(
    talk: Talk, clock: FakeClock, limit: int
) -> None:
    made: list[SessionId] = []
    for number in range(3):
        for source in (LOCAL_CLI, FAMILY, PHONE):
            clock.advance(SECOND)
            made.insert(0, await talk.session(f"{number}", source=source))
    assert await listed(talk, limit=limit) == made


async def test_sessions_of_other_people_are_not_listed(talk: Talk, clock: FakeClock) -> None:
    stranger = await talk.stranger()
    [session_id] = await talks(talk, clock, 1)
    assert await listed(talk, person_id=stranger.id) == []
    with pytest.raises(NotFound):
        await talk.database.read(lambda tx: get_session(tx, session_id, person_id=stranger.id))
    assert await talk.database.read(lambda tx: count(tx, person_id=stranger.id)) == SessionCount(
        sessions=0, messages=0
    )


async def test_an_empty_untitled_session_is_listed_for_a_minute(talk: Talk, clock: FakeClock) -> None:
    empty = await talk.session()
    clock.advance(60 * SECOND)
    assert await listed(talk) == [empty]
    assert await listed(talk, source="local") == [empty]
    clock.advance(1)
    assert await listed(talk) == []
    assert await listed(talk, source="local") == []


async def test_an_empty_session_with_a_title_stays_listed(talk: Talk, clock: FakeClock) -> None:
    empty = await talk.session()
    await talk.database.write(lambda tx: change_session.rename(tx, empty, "Later", person_id=talk.owner.id))
    clock.advance(3600 * SECOND)
    assert await listed(talk) == [empty]


async def test_filters_narrow_the_list(talk: Talk, clock: FakeClock) -> None:
    phone, local = await talk.session("phone", source=PHONE), await talk.session("local")
    old = await talk.session("old")
    saved = await talk.database.write(
        lambda tx: manage_project.create_project(tx, ProjectPlan(name="Trip"), person_id=talk.owner.id)
    )
    assert isinstance(saved, Project)
    await talk.database.write(
        lambda tx: change_session.set_project(tx, local, saved.id, person_id=talk.owner.id)
    )
    await talk.database.write(lambda tx: change_session.tag(tx, phone, "rome", person_id=talk.owner.id))
    clock.advance(100 * SECOND)
    await talk.say(local, "later")
    await talk.say(phone, "later still")
    assert await listed(talk, source="telegram") == [phone]
    assert await listed(talk, project="Trip") == [local]
    assert await listed(talk, project="Nothing") == []
    assert await listed(talk, tag="rome") == [phone]
    assert set(await listed(talk, active_within=50 * SECOND)) == {phone, local}
    assert set(await listed(talk, active_within=100 * SECOND)) == {phone, local, old}


@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_archived_sessions_have_a_separate_list(talk: Talk, clock: FakeClock, limit: int) -> None:
    made = await talks(talk, clock, 5)
    for away in made[:3]:
        await talk.database.write(lambda tx, s=away: change_session.archive(tx, s, person_id=talk.owner.id))  # type: ignore[misc]
    await talk.database.write(lambda tx: change_session.pin(tx, made[2], person_id=talk.owner.id))
    await talk.database.write(lambda tx: change_session.tag(tx, made[1], "rome", person_id=talk.owner.id))
    assert await listed(talk, limit=limit) == made[3:]
    assert await listed(talk, limit=limit, archived=True) == [made[2], made[0], made[1]]
    assert await listed(talk, archived=True, tag="rome", source="local") == [made[1]]
    assert await listed(talk, archived=True, project="Nothing") == []


async def test_the_bin_is_neither_listed_nor_counted(talk: Talk, clock: FakeClock) -> None:
    kept, thrown = await talks(talk, clock, 2)
    await talk.database.write(
        lambda tx: change_session.delete(tx, thrown, actor=Actor(person_id=talk.owner.id, give_way=give_way))
    )
    assert await listed(talk) == [kept]
    assert await talk.database.read(lambda tx: count(tx, person_id=talk.owner.id)) == SessionCount(
        sessions=1, messages=1
    )


async def test_a_row_has_name_preview_and_counts(talk: Talk) -> None:
    session_id = await talk.session("Where were we?", "At the hotel.", key="agent:main:local:dm:cli")
    session = await talk.database.read(lambda tx: get_session(tx, session_id, person_id=talk.owner.id))
    assert (session.id, session.key) == (session_id, "agent:main:local:dm:cli")
    assert (session.title, session.preview) == ("Where were we?", "At the hotel.")
    assert (session.message_count, session.input_tokens, session.cost_micros) == (2, 4, 6)
    assert session.source == LOCAL_CLI
    [row] = (await talk.database.read(lambda tx: list_sessions(tx, person_id=talk.owner.id))).rows
    assert row == session


async def test_sessions_of_one_platform_are_counted(talk: Talk) -> None:
    await talk.session("one", "two", source=PHONE)
    await talk.session("three")
    counted = await talk.database.read(lambda tx: count(tx, person_id=talk.owner.id, source="telegram"))
    assert counted == SessionCount(sessions=1, messages=2)
    assert await talk.database.read(lambda tx: count(tx, person_id=talk.owner.id)) == SessionCount(
        sessions=2, messages=3
    )


@pytest.mark.parametrize(
    "cursor", ["", "2.1.x", "0.x.20260101_000000_00000000", "0.1.nobody", "0.1", "1.9\x00"]
)
async def test_an_invalid_cursor_is_refused(talk: Talk, cursor: str) -> None:
    with pytest.raises(InvalidValue, match="is not where a page begins"):
        await talk.database.read(lambda tx: list_sessions(tx, person_id=talk.owner.id, after=cursor))


@pytest.mark.parametrize("limit", [0, 1_001])
async def test_an_invalid_page_size_is_refused(talk: Talk, limit: int) -> None:
    with pytest.raises(InvalidValue, match="ask for 1 to"):
        await talk.database.read(lambda tx: list_sessions(tx, person_id=talk.owner.id, limit=limit))


async def test_a_negative_time_is_refused() -> None:
    with pytest.raises(InvalidValue, match="active_within"):
        SessionFilter(active_within=-1)
