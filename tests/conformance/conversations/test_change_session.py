"""What people set on a session: told in the feed, never activity, and never out of reach again."""

from collections.abc import Callable
from functools import partial

import pytest

from keryx.clock import DAY, HOUR
from keryx.core.conversations.rules.event import START
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_settings import ModelSettings, Personality
from keryx.core.conversations.rules.title import TitleBy
from keryx.core.conversations.tables import drafts, feed, projects, session_changes, tags
from keryx.core.conversations.transactions.change_session import (
    Stale,
    archive,
    close,
    delete,
    mark_read,
    pin,
    rename,
    restore,
    save_draft,
    set_model,
    set_model_settings,
    set_personality,
    set_project,
    set_workspace,
    tag,
    untag,
)
from keryx.core.conversations.transactions.manage_project import (
    Project,
    ProjectNameTaken,
    ProjectPlan,
    archive_project,
    change_project,
    create_project,
)
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.media import tables as blobs
from keryx.core.media.transactions import collect_blobs, keep_blob
from keryx.core.people.tables import people
from keryx.core.turns.tables import inbox
from keryx.core.turns.transactions.flush_session import give_way
from keryx.errors import InvalidValue, NotAllowed, NotFound, SessionBusy
from keryx.ids import Ids
from keryx.store.database import Database, Tx
from keryx.testing.clock import FakeClock
from tests.conformance.talk import FAMILY, Talk


@pytest.fixture
async def talk(database: Database, ids: Ids) -> Talk:
    return await Talk.begin(database, ids)


Change = Callable[[Tx, SessionId, int], bool]

CHANGES: dict[str, Change] = {
    "rename": lambda tx, session_id, by: rename(tx, session_id, "New name", person_id=by),
    "pin": lambda tx, session_id, by: pin(tx, session_id, person_id=by),
    "archive": lambda tx, session_id, by: archive(tx, session_id, person_id=by),
    "tag": lambda tx, session_id, by: tag(tx, session_id, "#Rome", person_id=by),
    "workspace": lambda tx, session_id, by: set_workspace(tx, session_id, "/srv", person_id=by),
    "model": lambda tx, session_id, by: set_model(tx, session_id, "m1", person_id=by),
    "settings": lambda tx, session_id, by: set_model_settings(
        tx, session_id, ModelSettings(temperature=0.5), person_id=by
    ),
    "personality": lambda tx, session_id, by: set_personality(
        tx, session_id, Personality(name="Pirate", text="Arr"), person_id=by
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_change_adds_one_event_and_is_no_activity(
    talk: Talk, clock: FakeClock, change: Change
) -> None:
    session_id = await talk.session("a", "b")
    before = await talk.record(session_id)
    clock.advance(HOUR)
    assert await talk.database.write(lambda tx: change(tx, session_id, talk.owner.id))
    assert not await talk.database.write(lambda tx: change(tx, session_id, talk.owner.id))
    after = await talk.record(session_id)
    assert after.last_active_at == before.last_active_at
    assert (await talk.facts(session_id))[-2:] == ["message", "session.changed"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_changing_an_invisible_session_is_refused(talk: Talk, change: Change) -> None:
    session_id = await talk.session("a")
    stranger = await talk.stranger()
    with pytest.raises(NotFound):
        await talk.database.write(lambda tx: change(tx, session_id, stranger.id))


def _apply(tx: Tx, change: Change, session_id: SessionId, by: int) -> bool:
    return change(tx, session_id, by)


async def test_changes_are_stored_and_reversible(talk: Talk) -> None:
    session_id = await talk.session("a")
    by = talk.owner.id
    for change in CHANGES.values():
        await talk.database.write(partial(_apply, change=change, session_id=session_id, by=by))
    record = await talk.record(session_id)
    assert (record.title, record.title_by, record.workspace, record.model) == (
        "New name",
        "person",
        "/srv",
        "m1",
    )
    assert record.model_settings == '{"temperature":0.5}'
    assert record.personality == '{"name":"Pirate","text":"Arr"}'
    assert record.pinned_at == record.archived_at == record.started_at
    assert await talk.database.read(lambda tx: tags.list_tags(tx, session_id)) == ["rome"]

    def take_back(tx: Tx) -> None:
        rename(tx, session_id, None, person_id=by)
        pin(tx, session_id, person_id=by, pinned=False)
        archive(tx, session_id, person_id=by, archived=False)
        untag(tx, session_id, "rome", person_id=by)
        set_workspace(tx, session_id, None, person_id=by)
        set_model(tx, session_id, None, person_id=by)
        set_model_settings(tx, session_id, None, person_id=by)
        set_personality(tx, session_id, None, person_id=by)

    await talk.database.write(take_back)
    record = await talk.record(session_id)
    assert (record.title, record.title_by, record.workspace, record.model) == (None, None, None, None)
    assert (record.model_settings, record.personality, record.pinned_at, record.archived_at) == (None,) * 4
    assert await talk.database.read(lambda tx: tags.list_tags(tx, session_id)) == []


async def test_a_persons_title_is_never_overwritten_by_a_model(talk: Talk) -> None:
    session_id = await talk.session("first words")
    by = talk.owner.id
    assert (await talk.record(session_id)).title == "first words"
    assert await talk.database.write(lambda tx: rename(tx, session_id, "Model's", person_id=by, by="model"))
    assert await talk.database.write(lambda tx: rename(tx, session_id, " My\n title \0", person_id=by))
    others: tuple[TitleBy, ...] = ("text", "model")
    for other in others:
        assert not await talk.database.write(
            partial(rename, session_id=session_id, title="No", person_id=by, by=other)
        )
    assert (await talk.record(session_id)).title == "My title �"
    with pytest.raises(InvalidValue, match="title is empty"):
        await talk.database.write(lambda tx: rename(tx, session_id, "  ", person_id=by))


@pytest.mark.parametrize("text", ["", " # ", "x" * 65])
async def test_an_unusable_tag_is_refused(talk: Talk, text: str) -> None:
    session_id = await talk.session("a")
    with pytest.raises(InvalidValue, match="1 to 64"):
        await talk.database.write(lambda tx: tag(tx, session_id, text, person_id=talk.owner.id))


async def test_a_deleted_session_loses_its_keys_and_is_restored_open(talk: Talk) -> None:
    session_id = await talk.session("a", "b", key="agent:main:local:dm:cli")
    by = talk.owner.id
    await talk.ask(session_id, "c", ref="1")
    assert await talk.database.write(
        lambda tx: delete(tx, session_id, actor=Actor(person_id=by, give_way=give_way))
    )
    assert not await talk.database.write(
        lambda tx: delete(tx, session_id, actor=Actor(person_id=by, give_way=give_way))
    )
    record = await talk.record(session_id)
    assert (record.state, record.close_reason, record.deleted_at) == ("closed", "deleted", record.started_at)
    assert await talk.key_of(session_id) == []
    assert await talk.database.read(lambda tx: inbox.count_open(tx, session_id)) == 0
    assert await talk.database.write(lambda tx: restore(tx, session_id, person_id=by))
    assert not await talk.database.write(lambda tx: restore(tx, session_id, person_id=by))
    record = await talk.record(session_id)
    assert (record.state, record.deleted_at) == ("open", None)
    assert await talk.texts(session_id) == ["a", "b"]
    assert (await talk.facts(session_id))[3:] == [
        "inbox",
        "session.closed",
        "session.changed",
        "session.opened",
        "session.changed",
    ]


async def test_a_closed_session_stays_closed_through_the_bin(talk: Talk) -> None:
    session_id = await talk.session("a", key="agent:main:local:dm:cli")
    by = talk.owner.id
    assert await talk.database.write(lambda tx: close(tx, session_id, person_id=by, reason="done"))
    assert not await talk.database.write(lambda tx: close(tx, session_id, person_id=by, reason="again"))
    assert await talk.key_of(session_id) == []
    await talk.database.write(lambda tx: delete(tx, session_id, actor=Actor(person_id=by, give_way=give_way)))
    await talk.database.write(lambda tx: restore(tx, session_id, person_id=by))
    record = await talk.record(session_id)
    assert (record.state, record.close_reason) == ("closed", "done")


async def test_a_session_is_not_deleted_during_a_turn_or_by_another_person(talk: Talk) -> None:
    session_id = await talk.session(source=FAMILY)
    ben = await talk.stranger()
    audience_id = (await talk.record(session_id)).audience_id
    await talk.database.write(lambda tx: people.join_audience(tx, person_id=ben.id, audience_id=audience_id))
    with pytest.raises(NotAllowed, match="somebody else"):
        await talk.database.write(
            lambda tx: delete(tx, session_id, actor=Actor(person_id=ben.id, give_way=give_way))
        )
    await talk.ask(session_id, "a", ref="1")
    await talk.turn(session_id)
    with pytest.raises(SessionBusy):
        await talk.database.write(
            lambda tx: delete(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way))
        )


async def test_the_flushed_number_never_falls(talk: Talk) -> None:
    session_id = await talk.session("a", "b")
    assert await talk.database.write(lambda tx: session_changes.set_flushed_seq(tx, session_id, 2))
    assert not await talk.database.write(lambda tx: session_changes.set_flushed_seq(tx, session_id, 1))
    assert (await talk.record(session_id)).flushed_seq == 2


async def test_a_draft_with_an_old_revision_is_not_saved(talk: Talk) -> None:
    session_id = await talk.session("a")
    by = talk.owner.id

    async def save(text: str, revision: int) -> int | Stale:
        return await talk.database.write(
            lambda tx: save_draft(tx, session_id, text, person_id=by, revision=revision)
        )

    assert (
        await talk.database.read(lambda tx: drafts.find_draft(tx, person_id=by, session_id=session_id))
        is None
    )
    assert await save("on the phone \0\ud800", 0) == 1
    stale = await save("on the desk", 0)
    assert isinstance(stale, Stale)
    assert stale.current.text == "on the phone \0\ud800"
    assert await save("on the desk", stale.current.revision) == 2
    kept = await talk.database.read(lambda tx: drafts.find_draft(tx, person_id=by, session_id=session_id))
    assert kept is not None
    assert (kept.text, kept.revision) == ("on the desk", 2)


async def test_a_read_mark_never_moves_backwards(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c")
    by = talk.owner.id

    async def mark(seq: int) -> bool:
        return await talk.database.write(lambda tx: mark_read(tx, session_id, person_id=by, seq=seq))

    async def marked() -> int:
        return await talk.database.read(lambda tx: drafts.find_mark(tx, person_id=by, session_id=session_id))

    assert await marked() == 0
    assert [await mark(2), await mark(1), await mark(2), await mark(3)] == [True, False, False, True]
    assert await marked() == 3
    with pytest.raises(InvalidValue, match="last message"):
        await mark(4)
    events = await talk.database.read(lambda tx: feed.list_after(tx, after=START, person_id=by, limit=100))
    assert [event.subject for event in events if event.kind == "read"] == [2, 3]


async def test_projects_belong_to_one_person_and_have_one_name(talk: Talk) -> None:
    session_id = await talk.session("a")
    by = talk.owner.id
    stranger = await talk.stranger()

    async def create(name: str, person_id: int) -> Project | ProjectNameTaken:
        plan = ProjectPlan(name=name, colour="red", workspace="/srv")
        return await talk.database.write(lambda tx: create_project(tx, plan, person_id=person_id))

    rome = await create("Rome", by)
    assert isinstance(rome, Project)
    project_id = rome.id
    assert await create("Rome", by) == ProjectNameTaken(name="Rome")
    assert isinstance(await create("Rome", stranger.id), Project)
    assert isinstance(await create("Oslo", by), Project)
    taken = await talk.database.write(
        lambda tx: change_project(tx, project_id, ProjectPlan(name="Oslo"), person_id=by)
    )
    assert taken == ProjectNameTaken(name="Oslo")
    changed = await talk.database.write(
        lambda tx: change_project(tx, project_id, ProjectPlan(name="Roma"), person_id=by)
    )
    assert isinstance(changed, Project)
    assert (changed.name, changed.colour) == ("Roma", None)
    assert await talk.database.write(lambda tx: set_project(tx, session_id, project_id, person_id=by))
    assert (await talk.record(session_id)).project_id == project_id
    with pytest.raises(NotFound, match="of yours"):
        await talk.database.write(lambda tx: set_project(tx, session_id, project_id, person_id=stranger.id))
    assert await talk.database.write(lambda tx: set_project(tx, session_id, None, person_id=by))


async def test_an_archived_project_is_not_listed_and_can_be_restored(talk: Talk) -> None:
    by = talk.owner.id
    saved = await talk.database.write(lambda tx: create_project(tx, ProjectPlan(name="Rome"), person_id=by))
    assert isinstance(saved, Project)

    async def listed(*, archived: bool) -> list[str]:
        await talk.database.write(lambda tx: archive_project(tx, saved.id, person_id=by, archived=archived))
        return [
            project.name
            for project in await talk.database.read(lambda tx: projects.list_projects(tx, owner_id=by))
        ]

    assert await listed(archived=True) == []
    assert await listed(archived=False) == ["Rome"]
    assert await listed(archived=False) == ["Rome"]


@pytest.mark.parametrize("name", ["", "two\nlines", " x", "x" * 101])
def test_a_project_has_a_name_on_one_line(name: str) -> None:
    with pytest.raises(InvalidValue, match="project name"):
        ProjectPlan(name=name)


def blob(digit: str) -> blobs.Blob:
    return blobs.Blob(hash=digit * 64, media_type="image/png", size_bytes=3, data=b"\0x1", created_at=0)


async def test_a_blob_without_references_is_deleted_after_a_day(talk: Talk, clock: FakeClock) -> None:
    session_id = await talk.session("a")
    needed, loose = blob("a"), blob("b")

    def bring(tx: Tx) -> None:
        keep_blob(tx, session_id, needed)
        keep_blob(tx, session_id, needed)
        blobs.add_blob(tx, hash=loose.hash, media_type="text/plain", size_bytes=1, data=None)

    await talk.database.write(bring)
    clock.advance(DAY - 1)
    assert await talk.database.write(collect_blobs) == []
    clock.advance(1)
    assert await talk.database.write(collect_blobs) == [loose.hash]
    found = await talk.database.read(lambda tx: blobs.find_blob(tx, needed.hash))
    assert found is not None
    assert (found.media_type, found.size_bytes, bytes(found.data or b"")) == ("image/png", 3, b"\0x1")
    assert await talk.database.read(lambda tx: blobs.find_blob(tx, loose.hash)) is None


async def test_a_blob_that_is_added_again_is_kept_for_another_day(talk: Talk, clock: FakeClock) -> None:
    loose = blob("c")

    def bring(tx: Tx) -> None:
        blobs.add_blob(tx, hash=loose.hash, media_type="text/plain", size_bytes=1, data=None)

    await talk.database.write(bring)
    clock.advance(DAY)
    await talk.database.write(bring)
    assert await talk.database.write(collect_blobs) == []
