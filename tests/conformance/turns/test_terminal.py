"""What a terminal shows: each delivery to its address once, and the work of its session."""

from dataclasses import replace

import pytest

from keryx.clock import MINUTE, SECOND
from keryx.config import Settings
from keryx.core.accounts.transactions import take_connector
from keryx.core.conversations.rules.message import text_message, text_of
from keryx.core.conversations.rules.session_key import ScopeSettings
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.deliveries.rules.delivery import Sent
from keryx.core.deliveries.transactions.claim_deliveries import claim_deliveries, record_delivery
from keryx.core.turns.transactions.fail_turn import Failure, stop_turn
from keryx.core.turns.transactions.record_step import record_pause, record_text
from keryx.core.turns.views.pending_work import may_begin
from keryx.core.turns.views.terminal import TerminalView, ViewCursor, first_cursor, show_terminal
from keryx.core.turns.views.terminal_session import (
    HeldLease,
    LocalChat,
    find_item,
    find_outcome,
    find_title,
    is_at_work,
    list_leases,
)
from keryx.core.upkeep.transactions.record_heartbeat import enter_node
from keryx.store.database import Database
from keryx.testing.clock import FakeClock
from tests.conformance import acting as act
from tests.conformance.acting import ask, call, fail
from tests.conformance.stage import Stage

CHAT = LocalChat(source=LOCAL_CLI, settings=Settings(welcome=None))
WEB = Source(platform="web", chat_id="browser", chat_type="dm")


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage(database=database, clock=clock)


async def see(stage: Stage, cursor: ViewCursor) -> TerminalView:
    return await stage.look(lambda tx: show_terminal(tx, CHAT, cursor))


async def begin(stage: Stage) -> ViewCursor:
    return await stage.look(lambda tx: first_cursor(tx, CHAT))


async def send_all(stage: Stage) -> None:
    """Let another terminal record everything as sent."""
    connector = await stage.do(lambda tx: take_connector(tx, platform="local", account="", holder="terminal"))
    assert connector is not None
    while claimed := await stage.do(lambda tx: claim_deliveries(tx, connector)):
        for each in claimed:
            await stage.do(
                lambda tx, each=each: record_delivery(  # type: ignore[misc]
                    tx, connector, each.id, Sent(message_id=None), deduplicates=False
                )
            )


async def test_an_empty_store_has_nothing_to_show(stage: Stage) -> None:
    seen = await see(stage, await begin(stage))
    assert (seen.session_id, seen.deliveries, seen.received, seen.turn) == (None, (), (), None)
    assert seen.is_at_rest
    assert not seen.is_due
    assert await stage.look(lambda tx: list_leases(tx, CHAT)) == []


async def test_unfinished_deliveries_are_new_to_a_terminal_and_sent_ones_are_not(stage: Stage) -> None:
    await stage.exchange("one", "first", source=LOCAL_CLI)
    await send_all(stage)
    await stage.exchange("two", "second", source=LOCAL_CLI)
    cursor = await begin(stage)
    seen = await see(stage, cursor)
    assert [text_of(each.parts) for each in seen.deliveries] == ["second"]
    assert (seen.to_send, seen.unfinished) == (True, 1)
    # A delivery is new until this terminal has shown it, even if another process has recorded it as sent.
    await send_all(stage)
    seen = await see(stage, seen.cursor)
    assert [(text_of(each.parts), each.is_unfinished) for each in seen.deliveries] == [("second", False)]
    assert (seen.to_send, seen.unfinished) == (False, 0)
    done = replace(seen.cursor, seen=seen.cursor.seen | {each.id for each in seen.deliveries})
    assert (await see(stage, done)).deliveries == ()


async def test_a_terminal_sees_messages_of_others_after_it_entered_the_session(stage: Stage) -> None:
    session_id = await stage.exchange("about Rome", source=LOCAL_CLI)
    seen = await see(stage, await begin(stage))
    assert (seen.session_id, seen.received) == (session_id, ())
    await stage.accept("/attach about Rome", source=WEB)
    await stage.accept("and Ostia", source=WEB)
    seen = await see(stage, seen.cursor)
    assert [(text_of(each.parts), each.source.platform, each.person) for each in seen.received] == [
        ("/attach about Rome", "web", "owner"),
        ("and Ostia", "web", "owner"),
    ]
    assert (await see(stage, seen.cursor)).received == ()
    # Earlier messages of another session are not new.
    await stage.accept("/new", source=LOCAL_CLI)
    assert (await see(stage, seen.cursor)).received == ()


async def test_a_terminal_sees_why_an_answer_is_late_until_the_turn_continues(stage: Stage) -> None:
    accepted = await stage.accept("hello", source=LOCAL_CLI)
    cursor = await begin(stage)
    begun = await stage.begin()

    async def pause(reason: str | None) -> None:
        await stage.do(lambda tx: record_pause(tx, begun.held, reason=reason))

    async def why() -> str:
        await stage.accept("/why", source=LOCAL_CLI, ref=stage.ids.token())
        return text_of((await stage.deliveries("local"))[-1].parts)

    assert (await see(stage, cursor)).trouble is None
    await pause("openai is overloaded. Trying again in 2 s.")
    assert (await see(stage, cursor)).trouble == "openai is overloaded. Trying again in 2 s."
    assert (await why()).startswith("openai is overloaded. Trying again in 2 s.\nThe last message")
    await pause(None)
    assert (await see(stage, cursor)).trouble is None
    failure = Failure(reason="openai is overloaded.", retry_at=stage.clock.now() + MINUTE)
    assert await fail(stage, begun, failure) == "again"
    assert (await see(stage, cursor)).trouble == "openai is overloaded. It will be tried again."
    assert (await why()).startswith("openai is overloaded. It will be tried again.\n")
    stage.clock.advance(MINUTE)
    await stage.finish(await stage.begin(), "hello")
    assert (await see(stage, cursor)).trouble is None
    assert await stage.fate(accepted) == "answered"


async def test_a_reply_to_another_chat_is_seen_once(stage: Stage) -> None:
    stage.set(scope=ScopeSettings(dm="person"))
    chat = replace(CHAT, settings=stage.settings)
    await stage.exchange("about Rome", source=WEB)
    cursor = await stage.look(lambda tx: first_cursor(tx, chat))
    seen = await stage.look(lambda tx: show_terminal(tx, chat, cursor))
    assert (seen.elsewhere, seen.session_id is not None) == ((), True)
    await stage.exchange("and Ostia", "by the sea", source=WEB)
    await stage.exchange("hello", "here", source=LOCAL_CLI)
    await stage.accept("psst", source=WEB)
    await stage.finish(await stage.begin(), "unsaid", silent=True)
    seen = await stage.look(lambda tx: show_terminal(tx, chat, seen.cursor))
    assert [(text_of(each.parts), each.id) for each in seen.elsewhere] == [("by the sea", 2)]
    assert (await stage.look(lambda tx: show_terminal(tx, chat, seen.cursor))).elsewhere == ()


async def test_a_terminal_sees_a_turn_wait_run_and_ask(stage: Stage) -> None:
    session_id = (await stage.accept("hello", source=LOCAL_CLI)).session_id
    cursor = await begin(stage)
    seen = await see(stage, cursor)
    assert (seen.is_due, seen.queued, seen.turn, seen.is_at_rest) == (True, 1, None, False)
    begun = await stage.begin()
    await stage.do(lambda tx: record_text(tx, begun.held, start=0, text="I thi"))
    await stage.accept("and?", source=LOCAL_CLI)
    seen = await see(stage, cursor)
    assert seen.turn is not None
    assert (seen.turn.state, seen.turn.text, seen.queued, seen.is_due) == ("running", "I thi", 1, False)
    assert not seen.is_at_rest
    assert await stage.look(lambda tx: is_at_work(tx, session_id))
    await call(stage, begun, ("c", "ask"))
    await ask(stage, begun)
    seen = await see(stage, cursor)
    assert (seen.is_due, seen.is_at_rest) == (False, True)
    assert not await stage.look(lambda tx: is_at_work(tx, session_id))
    await stage.accept("/approve", source=LOCAL_CLI)
    assert await stage.look(lambda tx: may_begin(tx, session_id))


async def test_commands_that_wait_for_a_surface_are_counted(stage: Stage) -> None:
    await stage.accept("/search rome", source=LOCAL_CLI)
    seen = await see(stage, await begin(stage))
    assert (seen.commands, seen.queued, seen.is_due, seen.is_at_rest) == (1, 0, False, False)


async def test_the_text_of_a_stopped_turn_is_found(stage: Stage) -> None:
    accepted = await stage.accept("hello", source=LOCAL_CLI)
    begun = await stage.begin()
    ended = await stage.look(lambda tx: find_outcome(tx, begun.turn_id))
    assert (ended.state, ended.text) == ("running", None)
    partial = text_message("assistant", "I thi")
    await stage.do(lambda tx: stop_turn(tx, begun.held, partial=partial))
    ended = await stage.look(lambda tx: find_outcome(tx, begun.turn_id))
    assert (ended.state, ended.text) == ("stopped", "I thi")
    item = await stage.look(lambda tx: find_item(tx, accepted.inbox_id))
    assert item.fate == "cancelled"


async def test_a_call_is_new_until_its_end_was_seen(stage: Stage, clock: FakeClock) -> None:
    await stage.accept("do it", source=LOCAL_CLI)
    first = await see(stage, await begin(stage))
    begun = await stage.begin()
    await call(stage, begun, ("a", "once"), ("b", "pure"), ("c", "ask"), text="I will.")
    await act.start(stage, begun, "a")
    seen = await see(stage, first.cursor)
    assert [(each.call_id, each.has_begun, each.ended_at) for each in seen.calls] == [
        ("a", True, None),
        ("b", True, None),
        ("c", False, None),
    ]
    assert {(each.text_before, each.name, str(each.arguments), each.took) for each in seen.calls} == {
        ("I will.", "tool", "{}", None)
    }
    clock.advance(3 * SECOND)
    await act.result(stage, begun, "a")
    seen = await see(stage, seen.cursor)
    a, _, _ = seen.calls
    assert (a.took, a.has_failed) == (3 * SECOND, False)
    # A new terminal sees the calls that still run.
    late = await see(stage, await begin(stage))
    assert [each.call_id for each in late.calls] == ["b", "c"]
    seen = await see(stage, seen.cursor)
    assert [each.call_id for each in seen.calls] == ["b", "c"]
    await stage.do(lambda tx: stop_turn(tx, begun.held))
    seen = await see(stage, seen.cursor)
    assert [(each.call_id, each.has_failed, each.has_begun) for each in seen.calls] == [
        ("b", True, True),
        ("c", True, False),
    ]
    assert (await see(stage, seen.cursor)).calls == ()


async def test_the_calls_of_the_last_turn_and_of_the_next_are_seen_together(stage: Stage) -> None:
    await stage.accept("one", source=LOCAL_CLI)
    first = await see(stage, await begin(stage))
    begun = await stage.begin()
    await call(stage, begun, ("a", "pure"))
    seen = await see(stage, first.cursor)
    await act.result(stage, begun, "a")
    await stage.finish(begun)
    await stage.accept("two", source=LOCAL_CLI)
    await call(stage, await stage.begin(), ("b", "pure"))
    seen = await see(stage, seen.cursor)
    assert [each.call_id for each in seen.calls] == ["a", "b"]
    assert [each.call_id for each in (await see(stage, seen.cursor)).calls] == ["b"]


async def test_the_calls_of_a_turn_between_two_views_are_seen(stage: Stage) -> None:
    await stage.exchange("hello", source=LOCAL_CLI)
    first = await see(stage, await begin(stage))
    await stage.accept("one", source=LOCAL_CLI)
    begun = await stage.begin()
    await call(stage, begun, ("a", "pure"), text="I will.")
    await act.result(stage, begun, "a")
    await stage.finish(begun)
    seen = await see(stage, first.cursor)
    assert [(each.call_id, each.text_before) for each in seen.calls] == [("a", "I will.")]
    assert (await see(stage, seen.cursor)).calls == ()
    # A new terminal does not see ended calls.
    assert (await see(stage, await begin(stage))).calls == ()


async def test_a_conversation_has_a_title(stage: Stage) -> None:
    session_id = await stage.exchange("about Rome", source=LOCAL_CLI)
    assert await stage.look(lambda tx: find_title(tx, session_id)) == "about Rome"


async def test_the_leases_of_terminals_are_listed_with_their_processes(stage: Stage) -> None:
    await stage.do(lambda tx: enter_node(tx, holder="terminal", kind="chat", host="here", pid=7, version="1"))
    await stage.do(lambda tx: take_connector(tx, platform="local", account="", holder="terminal"))
    accepted = await stage.accept("hello", source=LOCAL_CLI)
    begun = await stage.begin(holder="terminal")
    account, turn = await stage.look(lambda tx: list_leases(tx, CHAT))
    assert account == HeldLease(holder="terminal", epoch=1, host="here", pid=7)
    assert (turn.turn_id, turn.session_id) == (begun.turn_id, accepted.session_id)
    await stage.accept("/stop", source=LOCAL_CLI)
    assert len(await stage.look(lambda tx: list_leases(tx, CHAT))) == 1


async def test_the_leases_of_gateways_are_not_listed(stage: Stage) -> None:
    await stage.do(
        lambda tx: enter_node(tx, holder="gateway", kind="gateway", host="here", pid=7, version="1")
    )
    await stage.do(lambda tx: take_connector(tx, platform="local", account="", holder="gateway"))
    await stage.accept("hello", source=LOCAL_CLI)
    await stage.begin(holder="gateway")
    assert await stage.look(lambda tx: list_leases(tx, CHAT)) == []
    assert (await see(stage, await begin(stage))).has_gateway
