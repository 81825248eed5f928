"""Accepting a message: who may speak, which conversation it belongs to, and redeliveries."""

import asyncio
from dataclasses import replace
from random import Random
from string import ascii_letters, digits

import pytest

from keryx.clock import HOUR
from keryx.core.conversations.rules.session_key import ScopeSettings
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.tables import session_keys
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import addresses
from keryx.core.people.rules.access import Refused
from keryx.core.people.tables import access, people
from keryx.core.people.transactions.link_accounts import offer_link
from keryx.core.people.transactions.pair_stranger import approve_pairing
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy
from keryx.core.turns.transactions.accept_message import Accepted, Duplicate
from keryx.store.database import Database, Tx
from keryx.testing.builders import dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage

DAILY = ResetPolicies(default=ResetPolicy(mode="daily", at_hour=4))
IDLE = ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=60))


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage(database=database, clock=clock)


async def test_messages_of_one_chat_share_a_session_and_others_have_their_own(stage: Stage) -> None:
    await stage.meet("ana")
    await stage.meet("ben")
    first = await stage.accept("one")
    assert (first.opened, first.reset) == (True, None)
    again = await stage.accept("two")
    assert (again.session_id, again.opened) == (first.session_id, False)
    other = await stage.accept("three", source=dm("ben"))
    assert other.opened
    assert other.session_id != first.session_id


async def test_a_session_keeps_its_source_its_owner_and_its_profile(stage: Stage) -> None:
    stage.set(profile="work")
    ana = await stage.meet("ana")
    accepted = await stage.accept("one")
    session = await stage.session(accepted.session_id)
    assert (session.source, session.owner_id, session.profile) == (dm(), ana.id, "work")
    [record] = await stage.look(lambda tx: session_keys.list_keys(tx, accepted.session_id))
    assert record.key == "agent:work:telegram:dm:ana"


SCOPES = [
    # A scope, two sources, and whether they share a conversation.
    (ScopeSettings(group="chat"), group("ana", chat="1"), group("ben", chat="1"), True),
    (ScopeSettings(group="user"), group("ana", chat="2"), group("ben", chat="2"), False),
    (
        ScopeSettings(thread="shared"),
        group("ana", chat="3", thread="1"),
        group("ben", chat="3", thread="1"),
        True,
    ),
    (
        ScopeSettings(thread="user"),
        group("ana", chat="4", thread="1"),
        group("ben", chat="4", thread="1"),
        False,
    ),
    (ScopeSettings(), group("ana", chat="5", thread="1"), group("ana", chat="5", thread="2"), False),
    (ScopeSettings(), group("ana", chat="6"), group("ana", chat="6", thread="1"), False),
    (ScopeSettings(dm="platform"), dm("ana"), replace(dm("ana"), chat_id="elsewhere"), True),
    (ScopeSettings(dm="chat"), dm("ben"), replace(dm("ben"), chat_id="elsewhere"), False),
]


async def test_the_scope_setting_decides_which_chats_share_a_conversation(stage: Stage) -> None:
    await stage.meet("ana")
    await stage.meet("ben")
    for number, (scope, one, other, shared) in enumerate(SCOPES):
        stage.set(scope=scope)
        first = await stage.accept(f"one {number}", source=one)
        second = await stage.accept(f"two {number}", source=other)
        assert (first.session_id == second.session_id) == shared, scope


async def test_a_linked_person_has_one_conversation_on_every_platform(stage: Stage) -> None:
    stage.set(scope=ScopeSettings(dm="person"))
    ana = await stage.meet("ana")
    await stage.do(
        lambda tx: access.add_identity(tx, dm("a", platform="signal"), person_id=ana.id, user_id="a")
    )
    first = await stage.accept("one")
    second = await stage.accept("two", source=dm("a", platform="signal"))
    assert first.session_id == second.session_id
    # The reply goes to the chat of the last message. A person's key is no surface, so it gets no copy.
    await stage.finish(await stage.begin(), "first")
    await stage.finish(await stage.begin(), "second")
    assert await stage.said("telegram") == [("telegram:ana", "first")]
    assert await stage.said("signal") == [("signal:a", "second")]


async def test_two_people_who_share_a_key_never_share_a_conversation(stage: Stage) -> None:
    stage.set(scope=ScopeSettings(dm="platform"))
    await stage.meet("ana")
    await stage.meet("ben")
    ana = await stage.accept("one", source=dm("ana"))
    ben = await stage.accept("two", source=dm("ben"))
    assert ana.session_id != ben.session_id
    assert (await stage.accept("three", source=dm("ana"))).session_id == ana.session_id
    assert (await stage.accept("four", source=dm("ben"))).session_id == ben.session_id


async def test_another_bot_in_the_same_group_is_another_conversation(stage: Stage) -> None:
    await stage.meet("ana")
    stage.set(first_accounts={"telegram": "red"})
    red = await stage.accept("one", source=replace(group(), account="red"))
    # The owner made another bot the first one: the key is the same, the audience differs.
    stage.set(first_accounts={"telegram": "blue"})
    blue = await stage.accept("two", source=replace(group(), account="blue"))
    assert red.session_id != blue.session_id


async def test_a_conversation_continues_after_its_account_is_linked_to_another_person(stage: Stage) -> None:
    await stage.meet("ana")
    session_id = await stage.exchange("one")
    owner = await stage.do(people.ensure_owner)
    offered = await stage.do(lambda tx: offer_link(tx, stage.ids, source=LOCAL_CLI, person_id=owner.id))
    linked = await stage.accept(f"/link {offered.code}")
    assert linked.session_id == session_id
    assert (await stage.accept("two")).session_id == session_id
    # A reset does not change the audience.
    await stage.finish(await stage.begin())
    stage.set(reset=IDLE)
    stage.clock.advance(2 * HOUR)
    renewed = await stage.accept("three")
    assert renewed.reset == "idle"
    before, after = await stage.session(session_id), await stage.session(renewed.session_id)
    assert before.audience_id == after.audience_id


async def test_a_new_name_of_the_chat_is_shown(stage: Stage) -> None:
    await stage.meet("ana")
    first = await stage.accept("one", source=group())
    await stage.accept("two", source=replace(group(), chat_name="Ant\x00s"))
    session = await stage.session(first.session_id)
    assert session.display_name == "Ant\ufffds"
    await stage.accept("three", source=replace(group(), chat_name=None))
    assert (await stage.session(first.session_id)).display_name == "Ant\ufffds"


async def test_a_person_at_the_terminal_is_the_owner(stage: Stage) -> None:
    accepted = await stage.accept("one", source=LOCAL_CLI)
    owner = await stage.do(people.ensure_owner)
    assert (await stage.session(accepted.session_id)).owner_id == owner.id


async def test_a_redelivered_message_changes_nothing(stage: Stage) -> None:
    await stage.meet("ana")
    first = await stage.accept("one", ref="update-1")
    again = await stage.hear("one", ref="update-1")
    assert again == Duplicate(inbox_id=first.inbox_id, session_id=first.session_id)
    await stage.finish(await stage.begin())
    assert isinstance(await stage.hear("other words", ref="update-1"), Duplicate)
    assert await stage.begin_if_any() is None


async def test_refs_are_unique_for_each_bot(stage: Stage) -> None:
    await stage.meet("ana")
    await stage.accept("one", source=dm(account="red"), ref="1")
    assert isinstance(await stage.hear("one", source=dm(account="blue"), ref="1"), Accepted)


async def test_a_redelivered_command_does_not_run_again(stage: Stage) -> None:
    await stage.meet("ana")
    await stage.exchange("hello")
    fresh = await stage.accept("/new", ref="n")
    assert await stage.fate(fresh) == "command"
    assert isinstance(await stage.hear("/new", ref="n"), Duplicate)
    assert len(await stage.rows("SELECT id FROM sessions")) == 2


async def test_of_two_concurrent_deliveries_one_is_a_duplicate(stage: Stage) -> None:
    await stage.meet("ana")
    outcomes = await asyncio.gather(*(stage.hear("one", ref="1") for _ in range(6)))
    assert [type(outcome) for outcome in outcomes].count(Accepted) == 1
    assert [type(outcome) for outcome in outcomes].count(Duplicate) == 5
    assert len({outcome.session_id for outcome in outcomes if not isinstance(outcome, Refused)}) == 1


async def test_concurrent_first_messages_open_one_session(stage: Stage) -> None:
    await stage.meet("ana")
    accepted = await asyncio.gather(*(stage.accept(f"message {number}") for number in range(6)))
    assert len({each.session_id for each in accepted}) == 1
    assert [each.opened for each in accepted].count(True) == 1


async def test_concurrent_messages_after_the_idle_time_reset_once(stage: Stage) -> None:
    await stage.meet("ana")
    await stage.exchange("one")
    stage.set(reset=IDLE)
    stage.clock.advance(2 * HOUR)
    accepted = await asyncio.gather(*(stage.accept(f"message {number}") for number in range(6)))
    assert len({each.session_id for each in accepted}) == 1
    assert [each.reset for each in accepted].count("idle") == 1


async def test_strangers_get_no_reply(stage: Stage) -> None:
    assert await stage.hear("hello") == Refused(reason="stranger", offer_pairing=False)
    nobody = replace(dm(), user_id=None)
    assert await stage.hear("hello", source=nobody) == Refused(reason="stranger", offer_pairing=False)
    assert await stage.rows("SELECT id FROM inbox") == []
    assert await stage.said() == []


async def test_a_stranger_is_offered_a_code_once_and_only_in_a_private_chat(stage: Stage) -> None:
    stage.set(pairing_platforms=frozenset({"telegram"}))
    assert await stage.hear("hello", source=group()) == Refused(reason="stranger", offer_pairing=False)
    assert await stage.hear("hello") == Refused(reason="stranger", offer_pairing=True)
    await stage.hear("hello?", ref="2")
    nobody = replace(dm(), user_id=None)
    assert await stage.hear("hello", source=nobody) == Refused(reason="stranger", offer_pairing=True)
    [delivery] = await stage.deliveries()
    assert (delivery.kind, delivery.session_id, delivery.address) == ("pairing", None, "telegram:ana")
    [(request_no,)] = await stage.rows("SELECT id FROM pairings")
    owner = await stage.do(people.ensure_owner)
    await stage.do(lambda tx: approve_pairing(tx, request_no, by=owner.id))
    assert isinstance(await stage.hear("hello", ref="3"), Accepted)


async def test_the_owner_is_notified_once_of_a_pairing_request_in_the_last_used_chat(stage: Stage) -> None:
    stage.set(pairing_platforms=frozenset({"telegram"}))
    await stage.hear("hello", source=dm("zoe"))
    told = "{} on telegram asks to be let in. Answer with /pair approve {n} or /pair deny {n}."
    assert await stage.said("local") == [("local:cli", told.format("Zoe", n=1))]

    def known_at(tx: Tx) -> None:
        owner = people.ensure_owner(tx)
        for source in (dm("o", platform="signal"), dm("o", platform="matrix")):
            access.add_identity(tx, source, person_id=owner.id, user_id="o")

    await stage.do(known_at)
    for platform in ("signal", "matrix"):
        await stage.exchange(platform, source=dm("o", platform=platform))
        stage.clock.advance(1)
    await stage.exchange("terminal", source=LOCAL_CLI)
    await stage.exchange("group", source=group("o", platform="matrix"))
    for ref in "ab":
        await stage.hear("hello", source=dm("yan"), ref=ref)
    assert (await stage.said("matrix"))[-1] == ("matrix:o", told.format("Yan", n=2))
    await stage.do(lambda tx: addresses.mark_dead(tx, Address.of(dm("o", platform="matrix")), reason="gone"))
    await stage.hear("hello", source=dm("xi"))
    assert (await stage.said("signal"))[-1] == ("signal:o", told.format("Xi", n=3))
    everywhere = [text for each in ("local", "matrix", "signal") for _, text in await stage.said(each)]
    assert len([text for text in everywhere if "asks to be let in" in text]) == 3


async def test_a_blocked_person_gets_no_reply(stage: Stage) -> None:
    ana = await stage.meet("ana")
    stage.set(pairing_platforms=frozenset({"telegram"}))
    await stage.do(lambda tx: access.block(tx, ana.id))
    assert await stage.hear("hello") == Refused(reason="blocked", offer_pairing=False)
    assert await stage.said() == []


async def test_a_stranger_with_a_linking_code_becomes_the_person_who_created_it(stage: Stage) -> None:
    owner = await stage.do(people.ensure_owner)
    offered = await stage.do(lambda tx: offer_link(tx, stage.ids, source=LOCAL_CLI, person_id=owner.id))
    for wrong in ("/link", "/link what", "/link AAAAAAAA", "/help", "/nonsense"):
        assert await stage.hear(wrong) == Refused(reason="stranger", offer_pairing=False)
    linked = await stage.accept(f"/link {offered.code}")
    assert await stage.fate(linked) == "command"
    assert (await stage.session(linked.session_id)).owner_id == owner.id
    assert await stage.said() == [("telegram:ana", "This account and CLI terminal both belong to owner now.")]
    assert isinstance(await stage.hear(f"/link {offered.code}"), Duplicate)


async def test_an_identity_may_hold_for_every_bot_of_a_platform(stage: Stage) -> None:
    await stage.meet("ana")
    assert isinstance(await stage.hear("hello", source=dm(account="second")), Accepted)


async def test_a_persons_first_message_is_welcomed_once(stage: Stage) -> None:
    stage.set(welcome="Welcome!", reset=IDLE)
    session_id = (await stage.accept("one", source=LOCAL_CLI)).session_id
    assert [text for _, text in await stage.said("local")] == ["Welcome!"]
    await stage.finish(await stage.begin())
    stage.clock.advance(2 * HOUR)
    renewed = await stage.accept("two", source=LOCAL_CLI)
    assert renewed.session_id != session_id
    assert [text for _, text in await stage.said("local")].count("Welcome!") == 1


async def test_a_message_shows_that_its_address_is_alive(stage: Stage) -> None:
    await stage.meet("ana")
    address = Address.of(dm())
    await stage.do(lambda tx: addresses.mark_dead(tx, address, reason="blocked"))
    await stage.accept("back again")
    known = await stage.look(lambda tx: addresses.find_address(tx, address))
    assert known is not None
    assert (known.dead_since_at, known.last_inbound_at) == (None, stage.clock.now())


async def test_a_stranger_without_a_pairing_request_is_not_told_of_one(stage: Stage) -> None:
    stage.set(pairing_platforms=frozenset({"telegram"}))
    refused = [await stage.hear("hello", source=dm(f"user-{number}"), ref=str(number)) for number in range(4)]
    waits, no = (Refused(reason="stranger", offer_pairing=offered) for offered in (True, False))
    assert refused == [waits, waits, waits, no]


async def test_ids_of_the_maximum_length_stay_distinct(stage: Stage) -> None:
    """Random text, because PostgreSQL compresses repetitive text, which then fits into an index."""
    random = Random(7)

    def longest() -> str:
        return "".join(random.choices(ascii_letters + digits, k=512))

    stage.set(scope=ScopeSettings(thread="user"))
    user = longest()
    await stage.meet(user)
    source = Source(
        platform="telegram",
        account=longest(),
        chat_id=longest(),
        chat_type="thread",
        thread_id=longest(),
        user_id=user,
        message_id="1",
    )
    first = await stage.accept("one", source=source)
    second = await stage.accept("two", source=replace(source, thread_id=longest()))
    assert first.opened
    assert second.opened
