"""Who may do what: the owner's decisions, grants, homes, and ids that are one user."""

from functools import partial

import pytest

from keryx.core.conversations.rules.event import START
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import addresses, home_channels
from keryx.core.deliveries.transactions.set_home import set_home
from keryx.core.people.rules.access import Grant
from keryx.core.people.rules.person import Person, PersonId
from keryx.core.people.tables import access, people
from keryx.core.people.transactions.manage_access import (
    block_person,
    change_role,
    learn_alias,
    remove_grant,
    resolve_source,
    set_grant,
    unblock_person,
)
from keryx.core.values.role import Role
from keryx.errors import InvalidValue, NotAllowed, NotFound
from keryx.store.database import Database
from keryx.testing.clock import FakeClock

PHONE, LID = "+39055", "lid:77"


async def two_people(database: Database) -> tuple[Person, Person]:
    owner = await database.write(people.ensure_owner)
    member = await database.write(lambda tx: people.add_person(tx, name="Ana", role="member"))
    return owner, member


async def personal_facts(database: Database, person_id: int) -> list[tuple[str, int | None]]:
    events = await database.read(lambda tx: feed.list_after(tx, after=START, person_id=person_id, limit=100))
    return [(event.kind, event.subject) for event in events if event.person_id == person_id]


async def test_a_change_of_a_role_adds_an_event_for_both_people(database: Database) -> None:
    owner, ana = await two_people(database)
    for _ in range(2):
        changed = await database.write(lambda tx: change_role(tx, ana.id, "guest", by=owner.id))
        assert changed.role == "guest"
    assert await personal_facts(database, ana.id) == [("access", ana.id)]
    assert await personal_facts(database, owner.id) == [("access", ana.id)]


async def test_a_person_stays_blocked_until_unblocked(database: Database, clock: FakeClock) -> None:
    owner, ana = await two_people(database)
    since = clock.now()
    for _ in range(2):
        blocked = await database.write(lambda tx: block_person(tx, ana.id, by=owner.id))
        assert blocked.blocked_at == since
        clock.advance(1)
    for _ in range(2):
        unblocked = await database.write(lambda tx: unblock_person(tx, ana.id, by=owner.id))
        assert unblocked.blocked_at is None
    assert len(await personal_facts(database, ana.id)) == 2


async def test_only_the_owner_decides_and_only_about_others(database: Database) -> None:
    owner, ana = await two_people(database)
    grant = Grant(role="guest", kind="command", name="search")
    with pytest.raises(NotAllowed):
        await database.write(lambda tx: change_role(tx, owner.id, "guest", by=ana.id))
    with pytest.raises(NotAllowed):
        await database.write(lambda tx: set_grant(tx, grant, by=ana.id))
    with pytest.raises(NotAllowed):
        await database.write(lambda tx: block_person(tx, owner.id, by=owner.id))
    with pytest.raises(InvalidValue):
        await database.write(lambda tx: change_role(tx, ana.id, "owner", by=owner.id))
    with pytest.raises(NotFound):
        await database.write(lambda tx: block_person(tx, PersonId(99), by=owner.id))


async def test_grants_are_stored_replaced_and_deleted(database: Database) -> None:
    owner, _ = await two_people(database)
    role: Role = "guest"
    everywhere = Grant(role=role, kind="toolset", name="web")
    there = Grant(role=role, kind="toolset", name="web", platform="telegram", allow=False)
    for grant in (everywhere, there):
        await database.write(partial(set_grant, grant=grant, by=owner.id))
    assert await database.read(access.list_grants) == [everywhere, there]
    other_way = Grant(role=role, kind="toolset", name="web", allow=False)
    await database.write(lambda tx: set_grant(tx, other_way, by=owner.id))
    assert await database.read(access.list_grants) == [other_way, there]
    assert await database.write(lambda tx: remove_grant(tx, everywhere, by=owner.id))
    assert not await database.write(lambda tx: remove_grant(tx, everywhere, by=owner.id))
    assert await database.read(access.list_grants) == [there]
    assert await personal_facts(database, owner.id) == [("access", None)] * 4


async def test_the_last_chat_that_was_set_is_the_home_channel(database: Database, clock: FakeClock) -> None:
    owner, _ = await two_people(database)
    first = Source(platform="telegram", chat_id="1", chat_type="dm", chat_name="Ana")
    topic = Source(
        platform="telegram", account="two", chat_id="2", chat_type="thread", thread_id="7", chat_name="Ops\0"
    )
    slack = Source(platform="slack", chat_id="C1", chat_type="channel")
    for source in (topic, slack, first):
        await database.write(partial(set_home, source=source, by=owner.id))
        clock.advance(1)
    found = await database.read(home_channels.list_homes)
    assert found == {
        "telegram": (Address(platform="telegram", chat_id="1"), "Ana"),
        "slack": (Address(platform="slack", chat_id="C1"), None),
    }
    await database.write(lambda tx: set_home(tx, topic, by=owner.id))
    found = await database.read(home_channels.list_homes)
    assert found["telegram"] == (
        Address(platform="telegram", account="two", chat_id="2", thread_id="7"),
        "Ops\ufffd",
    )
    assert await personal_facts(database, owner.id) == [("home", None)] * 4


def whatsapp(user_id: str | None, alt: str | None = None) -> Source:
    return Source(
        platform="whatsapp",
        chat_id=user_id or "group",
        chat_type="dm",
        user_id=user_id,
        user_id_alt=alt,
        chat_id_alt=alt,
    )


async def resolved(database: Database, source: Source) -> Source:
    return await database.write(lambda tx: resolve_source(tx, source))


async def test_a_source_without_aliases_does_not_change(database: Database) -> None:
    assert await resolved(database, whatsapp(PHONE)) == whatsapp(PHONE)
    assert await resolved(database, whatsapp(None)) == whatsapp(None)


async def test_two_ids_in_one_source_resolve_to_one(database: Database) -> None:
    assert (await resolved(database, whatsapp(LID, PHONE))).user_id == LID
    later = await resolved(database, whatsapp(PHONE))
    assert (later.user_id, later.chat_id) == (LID, LID)
    again = await resolved(database, whatsapp(PHONE, LID))
    assert (again.user_id, again.chat_id) == (LID, LID)


async def test_an_id_in_use_stays_canonical(database: Database) -> None:
    _, ana = await two_people(database)
    await database.write(lambda tx: access.add_identity(tx, whatsapp(PHONE), person_id=ana.id, user_id=PHONE))
    assert (await resolved(database, whatsapp(LID, PHONE))).user_id == PHONE
    assert (await resolved(database, whatsapp(LID))).user_id == PHONE


async def test_a_chat_in_use_keeps_its_id(database: Database) -> None:
    known = Address(platform="signal", account="bot", chat_id="group.old")
    await database.write(lambda tx: addresses.record_inbound(tx, known))
    source = Source(
        platform="signal", account="bot", chat_id="group.new", chat_type="group", chat_id_alt="group.old"
    )
    assert (await resolved(database, source)).chat_id == "group.old"


async def test_an_alias_is_learnt_and_followed_to_its_end(database: Database) -> None:

    async def learn(given: str, alt: str) -> str:
        return await database.write(lambda tx: learn_alias(tx, whatsapp(None), given=given, alt=alt))

    assert await learn("b", "a") == "b"
    assert await learn("c", "b") == "c"
    assert await learn("c", "a") == "c"
    assert await learn("a", "c") == "c"
    assert await learn("a", "b") == "c"
    assert (await resolved(database, whatsapp("a"))).user_id == "c"


async def test_a_cycle_of_aliases_resolves_to_one_id(database: Database) -> None:
    for alias, user_id in (("x", "y"), ("y", "x")):
        await database.write(partial(access.add_alias, source=whatsapp(None), alias=alias, user_id=user_id))
    assert [(await resolved(database, whatsapp(given))).user_id for given in ("x", "y")] == ["x", "x"]


async def test_an_alias_applies_to_one_account(database: Database) -> None:
    await resolved(database, whatsapp(LID, PHONE))
    elsewhere = Source(platform="whatsapp", account="two", chat_id=PHONE, chat_type="dm", user_id=PHONE)
    assert await resolved(database, elsewhere) == elsewhere
