"""Approvals: the first answer counts, unanswered questions expire, and either way the turn continues once."""

import asyncio

import pytest

from keryx.clock import DAY
from keryx.core.approvals import tables as approvals
from keryx.core.approvals.rules.approval import (
    Answered,
    Approval,
    ApprovalDecided,
    ApprovalExpired,
    NotThePersonAsked,
)
from keryx.core.approvals.transactions.decide_approval import decide_approval, expire_approvals
from keryx.core.conversations.rules.message import NewMessage, TextPart, ToolCallPart, text_of
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.transactions.open_session import open_session
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.core.turns.tables import inbox, turns
from keryx.core.turns.transactions.begin_turn import begin_turn
from keryx.core.turns.transactions.fail_turn import stop_session
from keryx.core.turns.transactions.record_step import ask_approval, record_calls
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.errors import NotFound
from keryx.ids import Ids
from keryx.store.database import Database, Tx
from keryx.store.opening import open_database
from keryx.testing.clock import FakeClock


async def asked(database: Database, ids: Ids) -> Approval:
    """Return an approval for which a turn waits."""

    def ask(tx: Tx) -> int:
        owner = people.ensure_owner(tx)
        session_id = open_session(tx, ids, source=LOCAL_CLI, owner=owner)
        inbox.add_item(
            tx,
            session_id=session_id,
            kind="message",
            source=LOCAL_CLI,
            ref=ids.token(),
            parts=(TextPart(text="Delete it."),),
            person_id=owner.id,
        )
        begun = begin_turn(tx, holder="me", session_id=session_id)
        assert begun is not None
        part = ToolCallPart(call_id="c1", name="delete", arguments={}, effect="ask")
        message = NewMessage(role="assistant", parts=(part,))
        record_calls(tx, begun.held, message=message, ids=ids)
        return ask_approval(tx, begun.held, call_id="c1", question="Delete it?", ids=ids)

    approval_id = await database.write(ask)
    return await look(database, approval_id)


async def look(database: Database, approval_id: int) -> Approval:
    return await database.read(lambda tx: approvals.get_approval(tx, approval_id))


async def answers(database: Database, record: Approval) -> list[inbox.InboxItem]:
    ready = await database.read(lambda tx: inbox.list_ready(tx, record.session_id))
    return [item for item in ready if item.kind == "approval"]


async def stranger(database: Database) -> Person:
    return await database.write(lambda tx: people.add_person(tx, name="Ana", role="member"))


async def test_the_first_answer_counts_and_lets_the_turn_go_on(
    database: Database, ids: Ids, clock: FakeClock
) -> None:
    record = await asked(database, ids)
    owner_id = record.person_id
    outcome = await database.write(lambda tx: decide_approval(tx, record.id, "approved", person_id=owner_id))
    assert isinstance(outcome, Answered)
    stored = await look(database, record.id)
    assert stored == outcome.approval
    assert (stored.state, stored.answered_by, stored.answered_at) == ("approved", owner_id, clock.now())
    [item] = await answers(database, record)
    assert (item.ref, item.platform, text_of(item.parts)) == (f"approval:{record.id}", "", "approved")

    second = await database.write(lambda tx: decide_approval(tx, record.id, "denied", person_id=owner_id))
    assert second == ApprovalDecided(approval=outcome.approval)
    assert len(await answers(database, record)) == 1
    begun = await database.write(lambda tx: begin_turn(tx, holder="me"))
    assert begun is not None
    assert (begun.turn_id, begun.resumed) == (record.turn_id, True)


async def test_another_person_cannot_answer(database: Database, ids: Ids) -> None:
    record = await asked(database, ids)
    other = await stranger(database)
    outcome = await database.write(lambda tx: decide_approval(tx, record.id, "approved", person_id=other.id))
    assert outcome == NotThePersonAsked()
    assert (await look(database, record.id)).state == "pending"
    assert await answers(database, record) == []


async def test_an_answer_after_the_expiry_is_refused_and_the_turn_continues(
    database: Database, ids: Ids, clock: FakeClock
) -> None:
    record = await asked(database, ids)
    clock.advance(DAY)
    for _ in range(2):
        outcome = await database.write(
            lambda tx: decide_approval(tx, record.id, "approved", person_id=record.person_id)
        )
        assert isinstance(outcome, ApprovalExpired)
    assert (await look(database, record.id)).state == "expired"
    [item] = await answers(database, record)
    assert text_of(item.parts) == "expired"


async def test_an_unanswered_question_expires_in_time_and_only_once(
    database: Database, ids: Ids, clock: FakeClock
) -> None:
    early = await asked(database, ids)
    clock.advance(DAY - 1)
    assert await database.write(lambda tx: expire_approvals(tx, ids=ids)) == []
    late = await asked(database, ids)
    clock.advance(1)
    [expired] = await database.write(lambda tx: expire_approvals(tx, ids=ids))
    assert (expired.id, expired.state, expired.answered_at) == (early.id, "expired", early.expires_at)
    assert len(await answers(database, early)) == 1
    assert await database.write(lambda tx: expire_approvals(tx, ids=ids)) == []
    assert await answers(database, late) == []


async def test_an_answer_to_a_stopped_turn_starts_nothing(database: Database, ids: Ids) -> None:
    record = await asked(database, ids)
    await database.write(lambda tx: turns.end_turn(tx, record.turn_id, state="stopped"))
    outcome = await database.write(
        lambda tx: decide_approval(tx, record.id, "approved", person_id=record.person_id)
    )
    assert isinstance(outcome, Answered)
    assert await answers(database, record) == []


async def test_a_stop_right_after_an_answer_leaves_no_item_that_begins_a_turn(
    database: Database, ids: Ids
) -> None:
    record = await asked(database, ids)
    await database.write(lambda tx: decide_approval(tx, record.id, "approved", person_id=record.person_id))
    [item] = await answers(database, record)
    session_id = SessionId(record.session_id)
    assert await database.write(lambda tx: stop_session(tx, session_id, holder="me")) == "stopped"
    assert await answers(database, record) == []
    assert await database.write(lambda tx: begin_turn(tx, holder="me")) is None
    ended = await database.read(lambda tx: inbox.find_item(tx, item.id))
    assert ended is not None
    assert (ended.fate, ended.turn_id) == ("cancelled", record.turn_id)
    assert await database.read(check_invariants) == []


async def test_an_unknown_question_is_not_found(database: Database) -> None:
    owner = await database.write(people.ensure_owner)
    with pytest.raises(NotFound):
        await database.write(lambda tx: decide_approval(tx, 99, "approved", person_id=owner.id))


async def test_an_answer_that_comes_while_the_question_expires_is_not_overridden(
    postgres_url: str, ids: Ids, clock: FakeClock
) -> None:
    """SQLite has one writer, so only PostgreSQL can show this race."""
    database = open_database(postgres_url, clock=clock)
    record = await asked(database, ids)
    clock.advance(DAY - 1)

    def answer_meanwhile(name: str) -> None:
        if name == "sessions.lock":
            answer = lambda tx: decide_approval(tx, record.id, "denied", person_id=record.person_id)  # noqa: E731
            assert isinstance(asyncio.run(database.write(answer)), Answered)

    late_clock = FakeClock(clock.now() + 1)
    slow = open_database(postgres_url, clock=late_clock, hook=answer_meanwhile)
    assert await slow.write(lambda tx: expire_approvals(tx, ids=ids)) == []
    assert (await look(database, record.id)).state == "denied"
    await slow.close()
    await database.close()
