"""Transactions of the gateway's loops: previews, pieces, waiting commands, nodes, malformed updates."""

from functools import partial
from typing import Literal

import pytest

from keryx.clock import HOUR
from keryx.core.accounts.transactions import Connector, release_connector, take_connector
from keryx.core.approvals.transactions.decide_approval import decide_approval
from keryx.core.context.rules.prompt import context_block
from keryx.core.conversations.rules.message import text_message, text_of
from keryx.core.conversations.transactions.branch_session import undo
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.deliveries.rules.delivery import Rejected, Sent, Unknown
from keryx.core.deliveries.tables import outbox
from keryx.core.deliveries.transactions.claim_deliveries import (
    claim_deliveries,
    record_delivery,
    record_piece,
)
from keryx.core.deliveries.transactions.show_preview import open_preview, record_preview
from keryx.core.deliveries.views.message_fates import (
    count_unsettled,
    list_deliveries,
    list_ended,
    list_fates,
    next_probe_at,
)
from keryx.core.people.rules.person import PersonId
from keryx.core.people.tables import access, people
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.cancel_item import cancel_item
from keryx.core.turns.transactions.fail_turn import Failure, fail_turn, hand_back_turn, stop_turn
from keryx.core.turns.transactions.flush_session import give_way
from keryx.core.turns.transactions.inbox_items import answer_command
from keryx.core.turns.transactions.record_step import ask_approval, record_calls, record_text
from keryx.core.turns.views.pending_work import has_due_deliveries, list_ready
from keryx.core.turns.views.turn import (
    audience_at,
    list_commands,
    list_speaking,
    list_stopping,
    show_turn,
    text_so_far,
)
from keryx.core.upkeep import tables as nodes
from keryx.core.upkeep.transactions.keep_malformed import keep_malformed
from keryx.core.upkeep.transactions.record_heartbeat import enter_node, leave_node, release_dead_node
from keryx.core.upkeep.views.nodes import show_nodes
from keryx.errors import LeaseLost
from keryx.store.database import Database, ReadTx
from keryx.testing.builders import call_message, dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    await stage.meet("ben")
    return stage


@pytest.fixture
async def connector(stage: Stage) -> Connector:
    taken = await stage.do(lambda tx: take_connector(tx, platform="telegram", account="", holder="node"))
    assert taken is not None
    return taken


async def begun(stage: Stage, text: str = "tell me") -> BegunTurn:
    await stage.accept(text)
    return await stage.begin()


async def preview_of(stage: Stage, connector: Connector, turn: BegunTurn) -> outbox.Delivery | None:
    return await stage.do(lambda tx: open_preview(tx, connector, turn.turn_id, ids=stage.ids))


async def due(stage: Stage, connector: Connector) -> list[outbox.Delivery]:
    return await stage.do(lambda tx: claim_deliveries(tx, connector))


async def test_a_preview_becomes_the_reply_in_the_same_message(stage: Stage, connector: Connector) -> None:
    turn = await begun(stage)
    preview = await preview_of(stage, connector, turn)
    assert preview is not None
    assert preview.platform_message_id is None
    assert await due(stage, connector) == []
    await stage.do(lambda tx: record_preview(tx, connector, preview, Sent(message_id="77")))
    again = await preview_of(stage, connector, turn)
    assert again is not None
    assert (again.id, again.platform_message_id, again.maybe_repeated_at) == (preview.id, "77", None)
    await stage.finish(turn, "the whole answer")
    (reply,) = await due(stage, connector)
    assert (reply.id, reply.platform_message_id, text_of(reply.parts)) == (
        preview.id,
        "77",
        "the whole answer",
    )
    assert await preview_of(stage, connector, turn) is None


async def test_a_preview_without_a_receipt_makes_the_reply_a_marked_repetition(
    stage: Stage, connector: Connector
) -> None:
    turn = await begun(stage)
    preview = await preview_of(stage, connector, turn)
    assert preview is not None
    await stage.do(lambda tx: record_preview(tx, connector, preview, Unknown()))
    assert await preview_of(stage, connector, turn) is None
    await stage.finish(turn)
    (reply,) = await due(stage, connector)
    assert reply.maybe_repeated_at is not None


async def test_a_refused_preview_makes_no_repetition_mark(stage: Stage, connector: Connector) -> None:
    turn = await begun(stage)
    preview = await preview_of(stage, connector, turn)
    assert preview is not None
    await stage.do(lambda tx: record_preview(tx, connector, preview, Rejected(reason="too many")))
    await stage.finish(turn)
    (reply,) = await due(stage, connector)
    assert (reply.platform_message_id, reply.maybe_repeated_at) == (None, None)


async def test_a_turn_that_takes_over_continues_in_the_same_message(
    stage: Stage, connector: Connector
) -> None:
    turn = await begun(stage)
    preview = await preview_of(stage, connector, turn)
    assert preview is not None
    await stage.do(lambda tx: record_preview(tx, connector, preview, Sent(message_id="77")))
    await stage.do(lambda tx: hand_back_turn(tx, turn.held))
    other = await stage.begin(holder="another")
    assert other.answers[0].attempts == 0
    await stage.finish(other, "the answer")
    (reply,) = await due(stage, connector)
    assert (reply.id, reply.platform_message_id) == (preview.id, "77")


@pytest.mark.parametrize("how", ["undo", "cancel"])
async def test_the_preview_of_a_lost_turn_ends_with_its_item(
    stage: Stage, connector: Connector, how: str
) -> None:
    turn = await begun(stage)
    [item] = turn.answers
    preview = await preview_of(stage, connector, turn)
    assert preview is not None
    await stage.do(lambda tx: record_preview(tx, connector, preview, Sent(message_id="77")))
    await stage.do(lambda tx: hand_back_turn(tx, turn.held))
    if how == "undo":
        person_id = item.person_id
        assert person_id is not None
        await stage.do(
            lambda tx: undo(tx, turn.lease.session_id, actor=Actor(person_id=person_id, give_way=give_way))
        )
    else:
        await stage.do(lambda tx: cancel_item(tx, item.id, holder="ana"))
    (last,) = await due(stage, connector)
    assert (last.id, last.platform_message_id) == (preview.id, "77")
    assert text_of(last.parts) == {"undo": "(taken back)", "cancel": "(stopped)"}[how]


async def test_the_preview_of_a_stopped_turn_stays_with_a_note(stage: Stage, connector: Connector) -> None:
    turn = await begun(stage)
    preview = await preview_of(stage, connector, turn)
    assert preview is not None
    await stage.do(lambda tx: record_preview(tx, connector, preview, Sent(message_id="77")))
    partial = text_message("assistant", "Once upon")
    await stage.do(lambda tx: stop_turn(tx, turn.held, partial=partial))
    (reply,) = await due(stage, connector)
    assert text_of(reply.parts) == "Once upon\n(stopped)"


async def test_a_stopped_turn_without_a_preview_sends_nothing(stage: Stage, connector: Connector) -> None:
    turn = await begun(stage)
    preview = await preview_of(stage, connector, turn)
    assert preview is not None
    await stage.do(lambda tx: record_preview(tx, connector, preview, Rejected(reason="no")))
    await stage.do(lambda tx: stop_turn(tx, turn.held))
    assert await due(stage, connector) == []


async def test_a_failure_replaces_the_preview(stage: Stage, connector: Connector) -> None:
    turn = await begun(stage)
    preview = await preview_of(stage, connector, turn)
    assert preview is not None
    await stage.do(lambda tx: record_preview(tx, connector, preview, Sent(message_id="77")))
    failure = Failure(reason="no model")
    await stage.do(lambda tx: fail_turn(tx, turn.held, failure=failure, ids=stage.ids))
    (reply,) = await due(stage, connector)
    assert (reply.id, text_of(reply.parts)) == (
        preview.id,
        "I could not answer: no model\n/retry tries again.",
    )


async def test_only_the_holder_of_an_account_shows_its_previews(stage: Stage, connector: Connector) -> None:
    turn = await begun(stage)
    other = await stage.do(lambda tx: take_connector(tx, platform="discord", account="", holder="node"))
    assert other is not None
    assert await preview_of(stage, other, turn) is None
    await stage.do(lambda tx: release_connector(tx, connector))
    assert await preview_of(stage, connector, turn) is None


async def test_a_reply_to_another_chat_ends_the_preview(stage: Stage, connector: Connector) -> None:
    turn = await begun(stage)
    preview = await preview_of(stage, connector, turn)
    assert preview is not None
    await stage.do(lambda tx: record_preview(tx, connector, preview, Sent(message_id="77")))
    await stage.finish(turn, None)
    (left,) = await due(stage, connector)
    assert text_of(left.parts) == "(answered elsewhere)"


async def test_pieces_are_counted_and_the_id_of_the_first_stays(stage: Stage, connector: Connector) -> None:
    await stage.exchange("tell me")
    (reply,) = await due(stage, connector)
    assert await stage.do(lambda tx: record_piece(tx, reply, message_id="1"))
    assert await stage.do(lambda tx: record_piece(tx, reply, message_id="2"))
    sent = await stage.look(lambda tx: outbox.get_delivery(tx, reply.id))
    assert (sent.sent_pieces, sent.platform_message_id) == (2, "1")
    await stage.do(
        lambda tx: record_delivery(tx, connector, reply.id, Sent(message_id="3"), deduplicates=False)
    )
    assert not await stage.do(lambda tx: record_piece(tx, reply, message_id="4"))
    sent = await stage.look(lambda tx: outbox.get_delivery(tx, reply.id))
    assert (sent.state, sent.platform_message_id) == ("sent", "1")


async def test_a_command_for_the_surface_waits_until_it_is_answered_once(
    stage: Stage, connector: Connector
) -> None:
    accepted = await stage.accept("/search tea")
    assert await stage.begin_if_any() is None
    (waiting,) = await stage.look(list_commands)
    assert waiting.id == accepted.inbox_id
    assert await stage.do(lambda tx: answer_command(tx, waiting.id, reply="Nothing.", ids=stage.ids))
    assert not await stage.do(lambda tx: answer_command(tx, waiting.id, reply="Nothing.", ids=stage.ids))
    assert not await stage.do(lambda tx: answer_command(tx, 999, reply="Nothing.", ids=stage.ids))
    assert await stage.look(list_commands) == []
    (said,) = await due(stage, connector)
    assert text_of(said.parts) == "Nothing."
    assert (await stage.item(waiting.id)).fate == "command"


async def test_in_a_group_a_command_shows_only_what_the_group_may_see(stage: Stage) -> None:
    private = await stage.accept("hi")
    shared = await stage.accept("hi all", source=group())
    assert await stage.look(lambda tx: audience_at(tx, dm(), private.session_id)) is None
    assert await stage.look(lambda tx: audience_at(tx, group(), shared.session_id)) is not None


async def test_the_text_so_far_is_known_until_the_next_step(stage: Stage) -> None:
    turn = await begun(stage)

    async def say(start: int, text: str) -> None:
        await stage.do(lambda tx: record_text(tx, turn.held, start=start, text=text))

    await say(0, "So ")
    await say(3, "it is")
    assert [each.id for each in await stage.look(list_speaking)] == [turn.turn_id]
    assert await stage.look(lambda tx: text_so_far(tx, turn.turn_id)) == "So it is"
    await stage.do(lambda tx: record_calls(tx, turn.held, message=call_message(("c", "pure")), ids=stage.ids))
    assert await stage.look(list_speaking) == []


async def test_a_turn_is_shown_with_its_open_calls(stage: Stage) -> None:
    turn = await begun(stage)
    await stage.do(lambda tx: record_calls(tx, turn.held, message=call_message(("c", "once")), ids=stage.ids))
    view = await stage.look(lambda tx: show_turn(tx, turn.turn_id))
    assert [(each.call.call_id, each.effect, each.state, each.verdict) for each in view.open_calls] == [
        ("c", "once", "called", None)
    ]
    assert (view.role, view.platform, view.audience_id) == ("member", "telegram", None)
    assert await stage.look(lambda tx: list_stopping(tx, turn.lease.holder)) == []
    await stage.accept("/stop")
    assert await stage.look(lambda tx: list_stopping(tx, turn.lease.holder)) == [turn.turn_id]


async def test_a_turn_gets_the_person_and_the_chat(stage: Stage) -> None:
    blocks = []
    for number, user in enumerate(("ana", "ben", "ben", "ana")):
        await stage.accept(f"hello {number}", source=group(user))
        turn = await stage.begin()
        view = await stage.look(partial(show_turn, turn_id=turn.turn_id))
        assert view.context.source == group(user)
        blocks.append(context_block(view.context))
        await stage.finish(turn)
    assert 'speaker: "Ben"' in blocks[1]
    assert (blocks[1], blocks[0]) == (blocks[2], blocks[3]), "the same facts make the same bytes"


async def test_a_turn_gets_the_chat_that_joined_the_conversation(stage: Stage) -> None:
    there = await stage.exchange("figs")
    here = dm("ann", platform="matrix")
    ana = await stage.look(
        lambda tx: people.find_by_identity(tx, platform="telegram", account="", user_id="ana")
    )
    assert ana is not None
    await stage.do(lambda tx: access.add_identity(tx, here, person_id=ana.id, user_id="ann"))
    await stage.accept(f"/attach {there}", source=here)
    await stage.accept("and olives?", source=here)
    turn = await stage.begin()
    block = context_block((await stage.look(lambda tx: show_turn(tx, turn.turn_id))).context)
    assert "You are talking on matrix, in a direct message." in block


async def test_a_node_is_alive_until_its_heartbeat_expires(stage: Stage, connector: Connector) -> None:
    assert not await stage.look(nodes.has_gateway)

    async def enter(holder: str, kind: Literal["gateway", "chat"]) -> None:
        await stage.do(lambda tx: enter_node(tx, holder=holder, kind=kind, host="here", pid=7, version="1"))

    await enter("chat-1", "chat")
    assert not await stage.look(nodes.has_gateway)
    await enter("node", "gateway")
    turn = await begun(stage)
    shown = await stage.look(show_nodes)
    assert [(each.holder, each.kind, each.remaining > 0) for each in shown.nodes] == [
        ("chat-1", "chat", True),
        ("node", "gateway", True),
    ]
    assert [(each.platform, each.holder) for each in shown.accounts] == [("telegram", "node")]
    [answering] = shown.turns
    assert (answering.holder, answering.session_id) == ("gateway", turn.lease.session_id)
    assert shown.malformed == 0
    stage.clock.advance(LEASE_TIME + 1)
    assert not await stage.look(nodes.has_gateway)
    assert all(each.remaining < 0 for each in (await stage.look(show_nodes)).nodes)
    await enter("node", "gateway")
    assert await stage.look(nodes.has_gateway)
    stage.clock.advance(2 * HOUR)
    await enter("node", "gateway")
    assert [each.holder for each in (await stage.look(show_nodes)).nodes] == ["node"]
    await stage.do(lambda tx: leave_node(tx, holder="node"))
    assert (await stage.look(show_nodes)).nodes == ()


async def test_a_malformed_update_is_stored_once(stage: Stage) -> None:
    async def keep() -> bool:
        return await stage.do(
            lambda tx: keep_malformed(
                tx, platform="telegram", account="", ref="9", raw="{\x00", reason="not JSON"
            )
        )

    assert [await keep(), await keep()] == [True, False]
    (kept,) = await stage.look(lambda tx: nodes.list_malformed(tx, limit=5))
    assert (kept.ref, kept.raw, kept.reason) == ("9", "{\ufffd", "not JSON")
    assert await stage.look(nodes.count_malformed) == 1


async def test_a_loop_reads_whether_there_is_work_before_it_writes(
    stage: Stage, connector: Connector
) -> None:
    def due(tx: ReadTx) -> bool:
        return has_due_deliveries(tx, platform="telegram", account="")

    accepted = await stage.accept("hello")
    in_session = partial(list_ready, session_id=accepted.session_id)
    assert await stage.look(list_ready)
    assert await stage.look(in_session)
    turn = await stage.begin()
    await stage.accept("and this")
    assert not await stage.look(list_ready)
    assert not await stage.look(in_session)
    assert not await stage.look(due)
    await stage.finish(turn)
    assert await stage.look(due)
    assert await stage.look(in_session)


async def test_a_waiting_turn_is_work_only_with_its_answer(stage: Stage) -> None:
    turn = await begun(stage)
    await stage.do(lambda tx: record_calls(tx, turn.held, message=call_message(("c", "ask")), ids=stage.ids))
    approval_id = await stage.do(
        lambda tx: ask_approval(tx, turn.held, call_id="c", question="?", ids=stage.ids)
    )
    in_session = partial(list_ready, session_id=turn.lease.session_id)
    await stage.accept("something else")
    assert not await stage.look(in_session)
    person_id = turn.answers[0].person_id
    assert person_id is not None
    await stage.do(lambda tx: decide_approval(tx, approval_id, "approved", person_id=PersonId(person_id)))
    assert await stage.look(in_session)


async def test_the_leases_of_a_dead_process_end_at_once_and_its_late_write_is_refused(stage: Stage) -> None:
    turn = await begun(stage)
    holder = turn.lease.holder
    taken = await stage.do(lambda tx: take_connector(tx, platform="telegram", account="", holder=holder))
    assert taken is not None
    await stage.do(lambda tx: release_dead_node(tx, holder="somebody else"))
    assert (await stage.look(show_nodes)).accounts != ()
    await stage.do(lambda tx: release_dead_node(tx, holder=holder))
    assert (await stage.look(show_nodes)).accounts == ()
    with pytest.raises(LeaseLost):
        await stage.finish(turn)
    assert await stage.recover()
    await stage.finish(await stage.begin(holder="another"))


async def test_the_fates_of_messages_and_deliveries_are_listed_in_order(
    stage: Stage, connector: Connector
) -> None:
    turn = await begun(stage, "first")
    await stage.accept("/status")
    second = await stage.accept("second")

    def fates(after: int = 0) -> list[tuple[str, str | None]]:
        return [(each.kind, each.fate) for each in found if each.id > after]

    found = await stage.look(lambda tx: list_fates(tx, platform="telegram"))
    assert fates() == [("message", None), ("command", "command"), ("message", None)]
    assert await stage.look(lambda tx: count_unsettled(tx, platform="telegram")) == 3  # and what /status says
    await stage.finish(turn)
    await stage.finish(await stage.begin())
    found = await stage.look(lambda tx: list_fates(tx, platform="telegram", after=second.inbox_id - 1))
    assert fates() == [("message", "answered")]
    for delivery in await due(stage, connector):
        await stage.do(
            lambda tx, no=delivery.id: record_delivery(  # type: ignore[misc]
                tx, connector, no, Sent(message_id="1"), deduplicates=True
            )
        )
    assert await stage.look(lambda tx: count_unsettled(tx, platform="telegram")) == 2
    assert await stage.look(lambda tx: count_unsettled(tx, platform="matrix")) == 0
    said = await stage.look(lambda tx: list_deliveries(tx, platform="telegram"))
    assert [(each.kind, each.state, each.turn_id is not None) for each in said] == [
        ("notice", "sent", False),
        ("reply", "ready", True),
        ("reply", "ready", True),
    ]
    ended = await stage.look(lambda tx: list_ended(tx, after=turn.turn_id))
    assert [(each.state, each.origin) for each in ended] == [("finished", dm("ana"))]
    assert [[source.chat_id for source in each.surfaces] for each in ended] == [[dm("ana").chat_id]]


async def test_a_dead_address_has_the_time_of_its_next_probe(
    stage: Stage, connector: Connector, clock: FakeClock
) -> None:
    await stage.finish(await begun(stage))
    (reply,) = await due(stage, connector)
    assert await stage.look(lambda tx: next_probe_at(tx, reply.to)) is None
    gone = Rejected(reason="gone", dead_address=True)
    await stage.do(lambda tx: record_delivery(tx, connector, reply.id, gone, deduplicates=False))
    assert await stage.look(lambda tx: next_probe_at(tx, reply.to)) == clock.now() + HOUR
