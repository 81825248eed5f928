"""Pairing and linking: how strangers get in, and how two accounts become one person."""

import asyncio
from functools import partial

import pytest

from keryx.clock import HOUR
from keryx.core.conversations.rules.part import TextPart
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.tables import sessions
from keryx.core.conversations.transactions.open_session import open_session
from keryx.core.deliveries.rules.route import ORIGIN
from keryx.core.people.rules.access import PairingCode
from keryx.core.people.rules.person import Person, PersonId
from keryx.core.people.tables import access, people
from keryx.core.people.transactions.link_accounts import (
    Linked,
    LinkRefused,
    enter_link,
    offer_link,
)
from keryx.core.people.transactions.manage_access import block_person
from keryx.core.people.transactions.pair_stranger import (
    AlreadyAsked,
    IssuedCode,
    NoSuchRequest,
    PairingApproved,
    PairingRefused,
    WrongCode,
    approve_pairing,
    deny_pairing,
    expire_pairings,
    offer_pairing,
)
from keryx.core.schedules import tables as schedules
from keryx.core.schedules.rules.plan import SchedulePlan
from keryx.core.schedules.transactions.manage_schedule import create_schedule
from keryx.core.values.role import Role
from keryx.errors import InvalidValue, NotAllowed
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.testing.clock import FakeClock

WRONG = PairingCode("ZZZZ9999")


def telegram(user_id: str | None, name: str | None = None) -> Source:
    return Source(
        platform="telegram", chat_id=user_id or "0", chat_type="dm", user_id=user_id, user_name=name
    )


async def owner_of(database: Database) -> Person:
    return await database.write(people.ensure_owner)


async def offered(database: Database, ids: Ids, user_id: str, name: str | None = None) -> IssuedCode:
    outcome = await database.write(lambda tx: offer_pairing(tx, telegram(user_id, name), ids))
    assert isinstance(outcome, IssuedCode)
    return outcome


async def who_is(database: Database, user_id: str) -> Person | None:
    return await database.read(
        lambda tx: people.find_by_identity(tx, platform="telegram", account="", user_id=user_id)
    )


async def let_in(database: Database, ids: Ids, user_id: str, role: Role = "member") -> Person:
    owner = await owner_of(database)
    offer = await offered(database, ids, user_id)
    outcome = await database.write(lambda tx: approve_pairing(tx, offer.request_no, by=owner.id, role=role))
    assert isinstance(outcome, PairingApproved)
    return outcome.person


async def test_the_owner_approves_a_request_by_number(database: Database, ids: Ids, clock: FakeClock) -> None:
    owner = await owner_of(database)
    offer = await offered(database, ids, "7", "Ana\0")
    assert offer.expires_at == clock.now() + HOUR
    outcome = await database.write(lambda tx: approve_pairing(tx, offer.request_no, by=owner.id))
    assert isinstance(outcome, PairingApproved)
    assert (outcome.person.name, outcome.person.role) == ("Ana\ufffd", "member")
    assert outcome.pairing.source == telegram("7", "Ana\0")
    assert await who_is(database, "7") == outcome.person
    again = await database.write(lambda tx: approve_pairing(tx, offer.request_no, by=owner.id))
    assert again == NoSuchRequest()


async def test_the_owner_approves_a_request_by_code_with_a_name_and_a_role(
    database: Database, ids: Ids
) -> None:
    owner = await owner_of(database)
    offer = await offered(database, ids, "7")
    typed = PairingCode(f"{offer.code[:4]}-{offer.code[4:]}".lower())
    outcome = await database.write(
        lambda tx: approve_pairing(tx, typed, by=owner.id, name="Ana", role="guest")
    )
    assert isinstance(outcome, PairingApproved)
    assert (outcome.person.name, outcome.person.role) == ("Ana", "guest")


async def test_a_request_is_approved_as_an_account_of_a_known_person(database: Database, ids: Ids) -> None:
    owner = await owner_of(database)
    offer = await offered(database, ids, "7")
    outcome = await database.write(
        lambda tx: approve_pairing(tx, offer.request_no, by=owner.id, person_id=owner.id)
    )
    assert isinstance(outcome, PairingApproved)
    assert await who_is(database, "7") == owner


async def test_a_code_is_valid_for_one_hour(database: Database, ids: Ids, clock: FakeClock) -> None:
    owner = await owner_of(database)
    offer = await offered(database, ids, "7")
    clock.advance(HOUR - 1)
    assert await database.write(expire_pairings) == 0
    clock.advance(1)
    by_code = await database.write(lambda tx: approve_pairing(tx, offer.code, by=owner.id))
    assert by_code == WrongCode()
    by_number = await database.write(lambda tx: approve_pairing(tx, offer.request_no, by=owner.id))
    assert by_number == NoSuchRequest()
    assert await database.write(expire_pairings) == 1
    assert await database.write(expire_pairings) == 0
    assert (await offered(database, ids, "7")).request_no != offer.request_no


async def test_a_denied_stranger_may_ask_again_when_the_hour_is_over(
    database: Database, ids: Ids, clock: FakeClock
) -> None:
    owner = await owner_of(database)
    offer = await offered(database, ids, "7")
    denied = await database.write(lambda tx: deny_pairing(tx, offer.request_no, by=owner.id))
    assert denied
    assert not await database.write(lambda tx: deny_pairing(tx, offer.request_no, by=owner.id))
    asked = await database.write(lambda tx: offer_pairing(tx, telegram("7"), ids))
    assert asked == AlreadyAsked(request_no=offer.request_no, expires_at=offer.expires_at)
    assert await who_is(database, "7") is None
    clock.advance(HOUR)
    await offered(database, ids, "7")


async def test_a_stranger_with_a_code_gets_no_second_code(database: Database, ids: Ids) -> None:
    offer = await offered(database, ids, "7")
    again = await database.write(lambda tx: offer_pairing(tx, telegram("7"), ids))
    assert again == AlreadyAsked(request_no=offer.request_no, expires_at=offer.expires_at)


async def test_an_account_has_at_most_three_pending_requests(
    database: Database, ids: Ids, clock: FakeClock
) -> None:
    for user_id in ("1", "2", "3"):
        await offered(database, ids, user_id)
    fourth = await database.write(lambda tx: offer_pairing(tx, telegram("4"), ids))
    assert fourth == PairingRefused(reason="too_many_pending")
    elsewhere = Source(platform="telegram", account="two", chat_id="4", chat_type="dm", user_id="4")
    assert isinstance(await database.write(lambda tx: offer_pairing(tx, elsewhere, ids)), IssuedCode)
    clock.advance(HOUR)
    await offered(database, ids, "4")


async def test_simultaneous_requests_are_counted_one_after_the_other(
    database: Database, store_address: str, clock: FakeClock
) -> None:
    await owner_of(database)
    other = open_database(store_address, clock=clock)
    outcomes = await asyncio.gather(
        *(
            store.write(partial(offer_pairing, source=telegram(str(number)), ids=Ids(seed=number)))
            for number, store in enumerate([database, other] * 4)
        )
    )
    await other.close()
    assert sum(isinstance(outcome, IssuedCode) for outcome in outcomes) == 3


async def test_five_wrong_codes_lock_for_an_hour_and_a_valid_one_resets_the_count(
    database: Database, ids: Ids, clock: FakeClock
) -> None:
    owner = await owner_of(database)

    async def approve(code: PairingCode) -> object:
        return await database.write(lambda tx: approve_pairing(tx, code, by=owner.id))

    offer = await offered(database, ids, "7")
    for _ in range(4):
        assert await approve(WRONG) == WrongCode()
    assert isinstance(await approve(offer.code), PairingApproved)

    offer = await offered(database, ids, "8")
    for _ in range(4):
        assert await approve(WRONG) == WrongCode()
    locked = WrongCode(locked_until=clock.now() + HOUR)
    assert await approve(WRONG) == locked
    clock.advance(HOUR - 1)
    assert await approve(offer.code) == locked
    clock.advance(1)
    assert await approve(WRONG) == WrongCode()


async def test_a_locked_user_gets_no_code(database: Database, ids: Ids) -> None:
    for _ in range(5):
        await database.write(lambda tx: enter_link(tx, WRONG, source=telegram("7"), person_id=None))
    refused = await database.write(lambda tx: offer_pairing(tx, telegram("7"), ids))
    assert refused == PairingRefused(reason="locked")


async def test_only_the_owner_approves_and_there_is_no_second_owner(database: Database, ids: Ids) -> None:
    owner = await owner_of(database)
    ana = await let_in(database, ids, "7")
    offer = await offered(database, ids, "8")
    with pytest.raises(NotAllowed):
        await database.write(lambda tx: approve_pairing(tx, offer.request_no, by=ana.id))
    with pytest.raises(NotAllowed):
        await database.write(lambda tx: deny_pairing(tx, offer.request_no, by=ana.id))
    with pytest.raises(InvalidValue):
        await database.write(lambda tx: approve_pairing(tx, offer.request_no, by=owner.id, role="owner"))
    with pytest.raises(InvalidValue):
        await database.write(lambda tx: approve_pairing(tx, PairingCode("short"), by=owner.id))


async def test_a_source_without_a_user_id_cannot_pair(database: Database, ids: Ids) -> None:
    with pytest.raises(InvalidValue):
        await database.write(lambda tx: offer_pairing(tx, telegram(None), ids))
    with pytest.raises(InvalidValue):
        await database.write(lambda tx: enter_link(tx, WRONG, source=telegram(None), person_id=None))


async def link_code(database: Database, ids: Ids, person: Person, source: Source = LOCAL_CLI) -> IssuedCode:
    return await database.write(lambda tx: offer_link(tx, ids, source=source, person_id=person.id))


async def enter(
    database: Database, code: PairingCode, source: Source, person_id: PersonId | None = None
) -> object:
    return await database.write(lambda tx: enter_link(tx, code, source=source, person_id=person_id))


async def test_a_stranger_who_enters_a_link_code_becomes_its_person(database: Database, ids: Ids) -> None:
    owner = await owner_of(database)
    request = await offered(database, ids, "7")
    offer = await link_code(database, ids, owner)
    outcome = await enter(database, offer.code, telegram("7"))
    assert outcome == Linked(person=owner, source=LOCAL_CLI)
    assert await who_is(database, "7") == owner
    assert await enter(database, offer.code, telegram("8")) == WrongCode()
    left = await database.write(lambda tx: approve_pairing(tx, request.request_no, by=owner.id))
    assert left == NoSuchRequest()


async def test_a_denied_account_may_still_be_linked(database: Database, ids: Ids) -> None:
    owner = await owner_of(database)
    request = await offered(database, ids, "7")
    await database.write(lambda tx: deny_pairing(tx, request.request_no, by=owner.id))
    offer = await link_code(database, ids, owner)
    assert isinstance(await enter(database, offer.code, telegram("7")), Linked)


async def test_only_the_newest_code_links_and_a_pairing_code_does_not(database: Database, ids: Ids) -> None:
    owner = await owner_of(database)
    old = await link_code(database, ids, owner)
    new = await link_code(database, ids, owner)
    pairing = await offered(database, ids, "9")
    assert await enter(database, old.code, telegram("7")) == WrongCode()
    assert await enter(database, pairing.code, telegram("7")) == WrongCode()
    assert await database.write(lambda tx: approve_pairing(tx, new.code, by=owner.id)) == WrongCode()
    assert isinstance(await enter(database, new.code, telegram("7")), Linked)


async def test_linked_people_share_sessions_and_schedules(database: Database, ids: Ids) -> None:
    first, second = await let_in(database, ids, "7"), await let_in(database, ids, "8")
    plan = SchedulePlan(name="News", rule="@daily", zone="UTC", parts=(TextPart(text="News?"),), route=ORIGIN)
    for person in (first, second):
        await database.write(partial(create_schedule, plan=plan, person_id=person.id, origin=LOCAL_CLI))
    session_id = await database.write(lambda tx: open_session(tx, ids, source=telegram("8"), owner=second))
    offer = await link_code(database, ids, first, telegram("7"))
    outcome = await enter(database, offer.code, telegram("8"), second.id)
    assert outcome == Linked(person=first, source=telegram("7"))
    assert await who_is(database, "8") == first
    seen = await database.read(lambda tx: sessions.get_visible(tx, session_id, person_id=first.id))
    assert seen.owner_id == second.id
    moved = await database.read(lambda tx: schedules.get_schedule(tx, 2, owner_id=first.id))
    assert moved.name == "News (2)"


async def test_a_source_without_a_user_id_is_linked(database: Database, ids: Ids) -> None:
    web = Source(platform="web", chat_id="browser", chat_type="dm")
    first, second = await let_in(database, ids, "7"), await let_in(database, ids, "8", "guest")
    offer = await link_code(database, ids, first, telegram("7"))
    assert isinstance(await enter(database, offer.code, web, second.id), Linked)
    assert await who_is(database, "8") == first


async def test_a_code_of_a_lower_role_is_refused(database: Database, ids: Ids) -> None:
    owner = await owner_of(database)
    ana = await let_in(database, ids, "7")
    offer = await link_code(database, ids, ana, telegram("7"))
    assert await enter(database, offer.code, LOCAL_CLI, owner.id) == LinkRefused(reason="wrong_way")
    assert await who_is(database, "7") == ana
    assert await enter(database, offer.code, telegram("7"), ana.id) == LinkRefused(reason="linked")


@pytest.mark.parametrize("blocked", ["7", "8"])
async def test_a_blocked_person_is_not_linked(database: Database, ids: Ids, blocked: str) -> None:
    owner = await owner_of(database)
    first, second = await let_in(database, ids, "7"), await let_in(database, ids, "8")
    offer = await link_code(database, ids, first, telegram("7"))
    chosen = first if blocked == "7" else second
    await database.write(lambda tx: block_person(tx, chosen.id, by=owner.id))
    assert await enter(database, offer.code, telegram("8"), second.id) == LinkRefused(reason="blocked")
    assert await who_is(database, "8") is not None


async def test_of_two_simultaneous_entries_of_a_code_one_is_linked(
    postgres_url: str, ids: Ids, clock: FakeClock
) -> None:
    """SQLite has one writer, so only PostgreSQL can show this race."""
    database = open_database(postgres_url, clock=clock)
    owner = await owner_of(database)
    offer = await link_code(database, ids, owner)
    faster: list[object] = []

    def enter_meanwhile(name: str) -> None:
        if name == "access.lock_person" and not faster:
            faster.append(asyncio.run(enter(database, offer.code, telegram("7"))))

    slow = open_database(postgres_url, clock=clock, hook=enter_meanwhile)
    assert await enter(slow, offer.code, telegram("8")) == WrongCode()
    assert isinstance(faster[0], Linked)
    assert await who_is(database, "8") is None
    await slow.close()
    await database.close()


async def test_simultaneous_wrong_codes_are_all_counted(
    database: Database, store_address: str, clock: FakeClock
) -> None:
    other = open_database(store_address, clock=clock)
    enterer = access.Enterer("telegram", "", "7")
    await asyncio.gather(*(enter(store, WRONG, telegram("7")) for store in [database, other] * 2))
    await other.close()
    counted = await database.read(lambda tx: access.get_tries(tx, enterer))
    assert counted.wrong == 4
