"""Which session a surface shows: one at a time, never one that others would hear."""

from functools import partial

import pytest

from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.tables import sessions
from keryx.core.conversations.transactions.change_session import archive, delete, set_workspace
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.conversations.transactions.switch_session import (
    Surface,
    Switched,
    SwitchRefused,
    attach,
    detach,
    resume,
    start_new,
)
from keryx.core.people.rules.person import Person
from keryx.core.turns.transactions.flush_session import give_way
from keryx.errors import NotFound
from keryx.ids import Ids
from keryx.store.database import Database, Tx
from tests.conformance.talk import FAMILY, PHONE, Talk

CLI_KEY = SessionKey("agent:main:local:dm:cli")
PHONE_KEY = SessionKey("agent:main:telegram:dm:7")
FAMILY_KEY = SessionKey("agent:main:telegram:group:-1")


@pytest.fixture
async def talk(database: Database, ids: Ids) -> Talk:
    return await Talk.begin(database, ids)


def surface(person: Person, key: SessionKey = CLI_KEY, source: Source = LOCAL_CLI) -> Surface:
    return Surface(key=key, source=source, person=person)


async def do_resume(
    talk: Talk, session_id: SessionId, key: SessionKey = CLI_KEY, source: Source = LOCAL_CLI
) -> Switched | SwitchRefused:
    return await talk.database.write(lambda tx: resume(tx, surface(talk.owner, key, source), session_id))


async def test_a_new_session_inherits_surface_and_settings(talk: Talk) -> None:
    old = await talk.session("a", "b", key=CLI_KEY)
    await talk.database.write(lambda tx: set_workspace(tx, old, "/srv", person_id=talk.owner.id))
    switched = await talk.database.write(lambda tx: start_new(tx, talk.ids, surface(talk.owner)))
    assert switched.closed == old
    assert await talk.key_of(switched.session_id) == [CLI_KEY]
    new, before = await talk.record(switched.session_id), await talk.record(old)
    assert (new.workspace, new.title, new.message_count) == ("/srv", None, 0)
    assert (before.state, before.close_reason) == ("closed", "new")
    assert (await talk.facts(old))[-1] == "session.closed"


async def test_a_surface_without_a_session_gets_one(talk: Talk) -> None:
    switched = await talk.database.write(lambda tx: start_new(tx, talk.ids, surface(talk.owner)))
    assert switched.closed is None
    assert await talk.key_of(switched.session_id) == [CLI_KEY]


async def test_a_closed_session_is_resumed_and_the_shown_one_closed(talk: Talk) -> None:
    old = await talk.session("a", "b", key=CLI_KEY)
    new = (await talk.database.write(lambda tx: start_new(tx, talk.ids, surface(talk.owner)))).session_id
    await talk.database.write(lambda tx: archive(tx, old, person_id=talk.owner.id))
    assert await do_resume(talk, old) == Switched(session_id=old, closed=new)
    record = await talk.record(old)
    assert (record.state, record.archived_at) == ("open", None)
    assert (await talk.record(new)).close_reason == "switch"
    assert await talk.texts(old) == ["a", "b"]
    assert await do_resume(talk, old) == Switched(session_id=old, closed=None)


async def test_a_session_of_the_phone_is_resumed_in_the_terminal(talk: Talk) -> None:
    phone = await talk.session("a", key=PHONE_KEY, source=PHONE)
    assert await do_resume(talk, phone) == Switched(session_id=phone, closed=None)
    assert sorted(await talk.key_of(phone)) == sorted([CLI_KEY, PHONE_KEY])
    left = await talk.database.write(lambda tx: detach(tx, talk.ids, surface(talk.owner)))
    assert isinstance(left, Switched)
    assert left.closed is None
    assert await talk.key_of(phone) == [PHONE_KEY]
    assert (await talk.record(phone)).state == "open"


async def test_nothing_private_is_shown_in_a_group_nor_the_other_way_round(talk: Talk) -> None:
    private = await talk.session("secret", key=CLI_KEY)
    group = await talk.session("hello", key=FAMILY_KEY, source=FAMILY)
    refused = SwitchRefused(reason="audience")
    assert await do_resume(talk, private, FAMILY_KEY, FAMILY) == refused
    assert await do_resume(talk, group) == refused
    for session_id, place in (
        (private, surface(talk.owner, FAMILY_KEY, FAMILY)),
        (group, surface(talk.owner)),
    ):
        outcome = await talk.database.write(partial(attach, surface=place, session_id=session_id))
        assert outcome == refused
    assert await talk.key_of(private) == [CLI_KEY]
    assert await talk.key_of(group) == [FAMILY_KEY]


async def test_a_surface_attaches_only_to_a_session_of_another_surface(talk: Talk) -> None:
    phone = await talk.session("a", key=PHONE_KEY, source=PHONE)
    here = await talk.session("b", key=CLI_KEY)
    nowhere = await talk.session("c")
    place = surface(talk.owner)
    refused = await talk.database.write(lambda tx: attach(tx, place, nowhere))
    assert refused == SwitchRefused(reason="closed")
    joined = await talk.database.write(lambda tx: attach(tx, place, phone))
    assert joined == Switched(session_id=phone, closed=here)


async def test_the_only_surface_of_a_session_cannot_detach(talk: Talk) -> None:
    place = surface(talk.owner)
    refused = SwitchRefused(reason="not_attached")
    assert await talk.database.write(lambda tx: detach(tx, talk.ids, place)) == refused
    await talk.session("a", key=CLI_KEY)
    assert await talk.database.write(lambda tx: detach(tx, talk.ids, place)) == refused


async def test_an_invisible_or_deleted_session_cannot_be_resumed(talk: Talk) -> None:
    session_id = await talk.session("a")
    stranger = await talk.stranger()
    with pytest.raises(NotFound):
        await talk.database.write(lambda tx: resume(tx, surface(stranger), session_id))
    await talk.database.write(
        lambda tx: delete(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way))
    )
    with pytest.raises(NotFound, match="in the bin"):
        await do_resume(talk, session_id)


async def test_a_closed_session_is_not_closed_again(talk: Talk) -> None:
    closed = await talk.session("a", key=CLI_KEY)
    other = await talk.session("b")

    def close_only(tx: Tx) -> None:
        assert sessions.close_session(tx, closed, reason="done")

    await talk.database.write(close_only)
    assert await do_resume(talk, other) == Switched(session_id=other, closed=None)
    assert (await talk.record(closed)).close_reason == "done"
