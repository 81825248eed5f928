"""Turns: each message is answered in its chat, in order, by one holder at a time."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from keryx.clock import DAY, MINUTE, SECOND
from keryx.core.approvals.transactions.manage_approval_rules import allow_by_rules
from keryx.core.conversations.rules.message import NewMessage, TextPart, text_message
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.transactions.append_message import append_held, append_message
from keryx.core.conversations.transactions.open_session import open_session
from keryx.core.deliveries.rules.route import Address
from keryx.core.people.tables import people
from keryx.core.processes.transactions.record_process import NewProcess, record_end, record_started
from keryx.core.turns.rules.lease import LEASE_TIME, Lease, TurnLease
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.begin_turn import BegunTurn, begin_turn
from keryx.core.turns.transactions.fail_turn import Failure, fail_turn, roll_back_turn, stop_turn
from keryx.core.turns.transactions.finish_turn import Reply, finish_turn
from keryx.core.turns.transactions.record_step import (
    ask_approval,
    record_calls,
    record_prompt,
    record_result,
    record_text,
    start_call,
)
from keryx.core.turns.transactions.renew_turn import renew_turn
from keryx.core.values.turn_states import TurnId
from keryx.errors import InvalidValue, LeaseLost, NotFound, SessionBusy
from keryx.ids import Ids
from keryx.store.database import Database, Tx
from keryx.testing.builders import call_message, dm, result_message
from keryx.testing.clock import FakeClock
from tests.conformance.acting import ask, call, fail, renew, result, roll_back
from tests.conformance.stage import Stage


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    return stage


async def test_a_message_is_answered_in_its_chat(stage: Stage) -> None:
    accepted = await stage.accept("How are you?")
    begun = await stage.begin()
    assert [item.id for item in begun.answers] == [accepted.inbox_id]
    assert (begun.purpose, begun.resumed) == ("reply", False)
    await stage.finish(begun, "Well.")
    assert await stage.texts(accepted.session_id) == ["How are you?", "Well."]
    [user, assistant] = await stage.transcript(accepted.session_id)
    assert (user.author, user.turn_id, assistant.turn_id) == ("Ana", begun.turn_id, begun.turn_id)
    assert await stage.said() == [("telegram:ana", "Well.")]
    assert await stage.fate(accepted) == "answered"
    assert (await stage.turn(begun)).state == "finished"
    session = await stage.session(accepted.session_id)
    assert (session.message_count, session.last_active_at) == (2, stage.clock.now())
    assert await stage.begin_if_any() is None


async def test_a_person_without_a_platform_name_gets_the_stored_name(stage: Stage) -> None:
    accepted = await stage.accept("hello", source=LOCAL_CLI)
    await stage.finish(await stage.begin())
    assert (await stage.transcript(accepted.session_id))[0].author == "owner"


async def test_an_item_without_a_person_has_no_author(stage: Stage) -> None:
    def add(tx: Tx) -> SessionId:
        session_id = open_session(tx, stage.ids, source=LOCAL_CLI, owner=people.ensure_owner(tx))
        inbox.add_item(
            tx,
            session_id=session_id,
            kind="agent",
            source=LOCAL_CLI,
            ref="r",
            parts=(TextPart(text="from another agent"),),
            person_id=None,
        )
        return session_id

    session_id = await stage.do(add)
    begun = await stage.begin()
    assert (await stage.transcript(session_id))[0].author is None
    await call(stage, begun, ("c", "ask"))
    with pytest.raises(InvalidValue, match="has no person to ask"):
        await ask(stage, begun)


async def test_turns_of_a_session_run_one_by_one_in_the_order_of_the_messages(stage: Stage) -> None:
    first = await stage.accept("one")
    await stage.accept("two")
    begun = await stage.begin()
    assert await stage.begin_if_any(holder="other") is None
    await stage.finish(begun, "1")
    await stage.finish(await stage.begin(), "2")
    assert await stage.texts(first.session_id) == ["one", "1", "two", "2"]
    assert [text for _, text in await stage.said()] == ["1", "2"]


async def test_the_session_that_waited_longest_begins_first(stage: Stage) -> None:
    await stage.meet("ben")
    late = await stage.accept("late")
    stage.clock.advance(SECOND)
    later = await stage.accept("later", source=dm("ben"))
    assert (await stage.begin()).lease.session_id == late.session_id
    assert (await stage.begin()).lease.session_id == later.session_id


async def test_a_terminal_begins_only_turns_of_its_own_session(stage: Stage) -> None:
    await stage.accept("elsewhere")
    here = await stage.accept("here", source=LOCAL_CLI)
    begun = await stage.do(lambda tx: begin_turn(tx, holder="me", session_id=here.session_id))
    assert begun is not None
    assert begun.lease.session_id == here.session_id
    await stage.finish(begun)
    assert await stage.do(lambda tx: begin_turn(tx, holder="me", session_id=here.session_id)) is None


async def test_racing_gateways_begin_each_turn_once(stage: Stage) -> None:
    for number in range(4):
        user = f"user{number}"
        await stage.meet(user)
        await stage.accept(f"hello {user}", source=dm(user))
    begun = await asyncio.gather(*(stage.begin_if_any(holder=f"gateway {number}") for number in range(12)))
    taken = [each.answers[0].id for each in begun if each is not None]
    assert len(taken) == len(set(taken)) == 4


async def test_a_silent_turn_sends_no_reply(stage: Stage) -> None:
    accepted = await stage.accept("note this")
    await stage.finish(await stage.begin(), "noted", silent=True)
    await stage.accept("and this")
    await stage.finish(await stage.begin(), None)
    assert await stage.texts(accepted.session_id) == ["note this", "noted", "and this"]
    assert await stage.said() == []


async def test_a_reply_may_follow_a_route(stage: Stage) -> None:
    await stage.accept("tell them")
    to = [Address(platform="signal", chat_id="x"), Address(platform="signal", chat_id="x")]
    await stage.finish(await stage.begin(), "told", to=to)
    assert await stage.said() == []
    assert await stage.said("signal") == [("signal:x", "told")]


async def test_a_reply_names_the_message_it_answers(stage: Stage) -> None:
    source = Source(platform="telegram", chat_id="ana", chat_type="dm", user_id="ana", message_id="77")
    await stage.accept("hello", source=source)
    await stage.finish(await stage.begin())
    assert [each.reply_to for each in await stage.deliveries()] == ["77"]


async def test_a_last_message_makes_no_calls() -> None:
    with pytest.raises(InvalidValue, match="makes no calls"):
        Reply(message=call_message(("c", "pure")))


async def test_the_end_of_a_process_begins_one_turn(stage: Stage) -> None:
    session_id = await stage.exchange("start it")
    person_id = (await stage.session(session_id)).owner_id
    wish = NewProcess(command="make", workspace=None)
    process_id = await stage.do(
        lambda tx: record_started(tx, wish, session_id=session_id, person_id=person_id)
    )
    active_at = (await stage.session(session_id)).last_active_at
    stage.clock.advance(MINUTE)
    await stage.do(lambda tx: record_end(tx, process_id, "exited", exit_code=0, output_bytes=2, tail="ok"))
    begun = await stage.begin()
    assert begun.purpose == "process"
    assert (await stage.session(session_id)).last_active_at == active_at
    assert (await stage.transcript(session_id))[-1].role == "system"
    await stage.finish(begun, "It is done.")
    assert (await stage.session(session_id)).last_active_at == stage.clock.now()
    assert await stage.begin_if_any() is None


async def test_turns_of_keryx_itself_are_no_activity(stage: Stage) -> None:
    session_id = await stage.exchange("hello")
    active_at = (await stage.session(session_id)).last_active_at
    stage.clock.advance(MINUTE)

    def begin_flush(tx: Tx) -> BegunTurn:
        lease = leases.take_lease(tx, SessionId(session_id), holder="flush")
        assert lease is not None
        turn_id = turns.add_turn(tx, lease, branch_no=0, purpose="flush", person_id=None, origin=None)
        return BegunTurn(
            held=TurnLease(lease=lease, turn_id=turn_id), purpose="flush", answers=(), resumed=False
        )

    begun = await stage.do(begin_flush)
    await call(stage, begun, ("c", "pure"), text="let me see")
    await result(stage, begun, "c")
    await stage.finish(begun, "kept")
    assert (await stage.session(session_id)).last_active_at == active_at
    assert await stage.said() == [("telegram:ana", "yes")]
    again = await stage.do(begin_flush)
    await fail(stage, again, Failure(reason="no"), text_message("assistant", "I had be"))
    assert (await stage.session(session_id)).last_active_at == active_at
    third = await stage.do(begin_flush)
    assert await roll_back(stage, third) == "stopped"


def writes(held: TurnLease, ids: Ids) -> dict[str, Callable[[Tx], object]]:
    """Every way to write into a turn."""
    said = Reply(message=text_message("assistant", "late"))
    return {
        "renew_turn": lambda tx: renew_turn(tx, held),
        "record_calls": lambda tx: record_calls(tx, held, message=call_message(("late", "once")), ids=ids),
        "start_call": lambda tx: start_call(tx, held, call_id="c"),
        "record_result": lambda tx: record_result(tx, held, result=result_message("c")),
        "record_text": lambda tx: record_text(tx, held, start=0, text="late"),
        "record_prompt": lambda tx: record_prompt(tx, held, model="m", prompt="p", tools="t"),
        "ask_approval": lambda tx: ask_approval(tx, held, call_id="c", question="?", ids=ids),
        "allow_by_rules": lambda tx: allow_by_rules(tx, held, calls=()),
        "finish_turn": lambda tx: finish_turn(tx, held, reply=said, ids=ids),
        "fail_turn": lambda tx: fail_turn(tx, held, failure=Failure(reason="late"), ids=ids),
        "stop_turn": lambda tx: stop_turn(tx, held),
        "roll_back_turn": lambda tx: roll_back_turn(tx, held, ids=ids),
    }


def lease_writes(lease: Lease) -> dict[str, Callable[[Tx], object]]:
    """The ways to write to a lease itself."""
    message = text_message("assistant", "late")
    return {
        "release_lease": lambda tx: leases.release_lease(tx, lease),
        "renew_lease": lambda tx: leases.renew_lease(tx, lease),
        "append_held": lambda tx: append_held(tx, TurnLease(lease=lease, turn_id=TurnId(1)), message),
    }


EVERYTHING = " UNION ALL ".join(
    f"SELECT '{table}', COUNT(*) FROM {table}"
    for table in ("messages", "steps", "outbox", "feed", "turn_chunks")
)


async def test_a_holder_with_an_expired_lease_writes_nothing(stage: Stage) -> None:
    await stage.accept("one")
    begun = await stage.begin()
    await call(stage, begun, ("c", "once"))
    before = await stage.rows(EVERYTHING)
    stage.clock.advance(LEASE_TIME)
    for name, write in (writes(begun.held, stage.ids) | lease_writes(begun.lease)).items():
        with pytest.raises(LeaseLost):
            await stage.do(write)
        assert await stage.rows(EVERYTHING) == before, name


async def test_a_replaced_holder_writes_nothing(stage: Stage) -> None:
    await stage.accept("one")
    begun = await stage.begin(holder="same name")
    await call(stage, begun, ("c", "once"))
    await stage.lose_holder()
    await stage.recover()
    await stage.begin(holder="same name")
    before = await stage.rows(EVERYTHING)
    for name, write in (writes(begun.held, stage.ids) | lease_writes(begun.lease)).items():
        with pytest.raises(LeaseLost):
            await stage.do(write)
        assert await stage.rows(EVERYTHING) == before, name


async def test_a_lease_is_valid_only_for_its_own_turn(stage: Stage) -> None:
    await stage.accept("one")
    first = await stage.begin()
    await stage.finish(first)
    await stage.accept("two")
    second = await stage.begin()
    for write in writes(replace(first.held, lease=second.lease), stage.ids).values():
        with pytest.raises(LeaseLost):
            await stage.do(write)


async def test_after_a_reboot_no_lease_is_valid(database: Database, clock: FakeClock, stage: Stage) -> None:
    if database.dialect == "postgres":
        return  # a server's clock survives a reboot of the client
    await stage.accept("one")
    begun = await stage.begin()
    clock.reboot()
    with pytest.raises(LeaseLost):
        await renew(stage, begun)
    assert (await stage.recover()).turns == 1
    await stage.finish(await stage.begin())


async def test_a_renewed_lease_gets_its_full_time(stage: Stage) -> None:
    await stage.accept("one")
    begun = await stage.begin()
    for _ in range(3):
        stage.clock.advance(LEASE_TIME - 1)
        assert (await renew(stage, begun)).lease.expires_at == stage.clock.monotonic() + LEASE_TIME
    assert not await stage.recover()


async def test_epochs_rise_with_each_holder(stage: Stage) -> None:
    epochs = []
    for number in range(3):
        await stage.accept(f"message {number}")
        begun = await stage.begin()
        epochs.append(begun.lease.epoch)
        await stage.finish(begun)
    assert epochs == [1, 2, 3]


async def test_a_program_cannot_append_while_a_turn_runs(stage: Stage) -> None:
    session_id = (await stage.accept("one")).session_id
    ana = (await stage.session(session_id)).owner_id
    message = text_message("user", "in between")
    begun = await stage.begin()
    with pytest.raises(SessionBusy):
        await stage.do(lambda tx: append_message(tx, session_id, message, person_id=ana))
    await stage.finish(begun)
    appended = await stage.do(lambda tx: append_message(tx, session_id, message, person_id=ana))
    assert appended.seq == 3
    ben = await stage.meet("ben")
    with pytest.raises(NotFound):
        await stage.do(lambda tx: append_message(tx, session_id, message, person_id=ben.id))


async def test_an_imported_time_is_kept_and_never_moves_activity_backwards(stage: Stage) -> None:
    session_id = await stage.exchange("one")
    session = await stage.session(session_id)
    old = NewMessage(role="user", parts=(TextPart(text="old"),), created_at=session.last_active_at - DAY)
    await stage.do(lambda tx: append_message(tx, session_id, old, person_id=session.owner_id))
    assert (await stage.transcript(session_id))[-1].created_at == session.last_active_at - DAY
    assert (await stage.session(session_id)).last_active_at == session.last_active_at
