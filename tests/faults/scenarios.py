"""A scenario for every transaction, on the world of ``world.py``; the store dies before each of its statements."""

from collections.abc import Callable
from dataclasses import replace

from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.core.accounts import transactions as accounts
from keryx.core.approvals import tables as approvals
from keryx.core.approvals.rules.approval_rule import CallToApprove
from keryx.core.approvals.transactions import decide_approval, manage_approval_rules
from keryx.core.context.rules.context_usage import ContextUsage
from keryx.core.context.transactions import compress_command, cover_messages, manage_memory, pin_command
from keryx.core.conversations.rules.archive import Archive, MessageLine, SessionLine
from keryx.core.conversations.rules.message import NewMessage, TextPart, ToolCallPart, text_message
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.session_settings import ModelSettings, Personality
from keryx.core.conversations.rules.source import LOCAL_CLI, one_shot_source
from keryx.core.conversations.tables import sessions
from keryx.core.conversations.transactions import (
    append_message,
    branch_session,
    change_session,
    import_session,
    manage_project,
    open_session,
    program_sessions,
    switch_session,
)
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.deliveries.rules.delivery import Rejected, Sent
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import outbox
from keryx.core.deliveries.transactions import claim_deliveries as deliveries
from keryx.core.deliveries.transactions import retire_address, send_message, set_home, show_preview
from keryx.core.media import transactions as keep_blobs
from keryx.core.media.rules import LongResult
from keryx.core.people.rules.access import Grant
from keryx.core.people.rules.person import PersonId
from keryx.core.people.transactions import link_accounts, manage_access, pair_stranger
from keryx.core.processes.transactions import record_process
from keryx.core.schedules.transactions import fire_schedule, manage_schedule
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy
from keryx.core.turns.tables import inbox, turns
from keryx.core.turns.transactions import (
    accept_message,
    begin_turn,
    cancel_item,
    delegate_task,
    fail_turn,
    finish_turn,
    flush_session,
    inbox_items,
    record_step,
    renew_turn,
    title_session,
)
from keryx.core.turns.transactions.flush_session import give_way
from keryx.core.upkeep.transactions import keep_malformed, purge_session, record_heartbeat, recover
from keryx.core.values.turn_states import StepEffect
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.testing.builders import call_message, dm, group, inbound, result_message
from tests.faults.world import BLOB, PLAN, PROCESS, SUMMARY, World

Scenario = Callable[[Tx, World, Ids], object]

RESETTING = Settings(reset=ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=60)))
NEW_GRANT = Grant(role="guest", kind="command", name="new")
PAIRING = Settings(pairing_platforms=frozenset({"telegram"}))
NEW = Personality(name="dry", text="Speak dryly.")
LONG = LongResult(text="tea " * 5_000)
REPLY = finish_turn.Reply(message=text_message("assistant", "done"))
WISH = CallToApprove(call_id="c", tool="tool", question="?", covers=None)
TITLE = replace(text_message("assistant", "Tea"), input_tokens=5, output_tokens=1)
ARCHIVE = Archive(
    session=SessionLine(id="20200101_000000_0000abcd", source=LOCAL_CLI, started_at=1, last_active_at=2),
    messages=(MessageLine(branch_no=0, seq=1, role="user", body='"hi"', created_at=1),),
)


def _accept(text: str, *, user: str = "ana", settings: Settings | None = None) -> Scenario:
    message = inbound(text, source=dm(user))
    judged_by = settings or Settings()
    return lambda tx, _world, ids: accept_message.accept_message(
        tx, message, settings=judged_by, ids=ids, commands=COMMANDS
    )


def _cancel(tx: Tx, _world: World, ids: Ids) -> None:
    said = inbound("no, wait", source=dm())
    accepted = accept_message.accept_message(tx, said, settings=Settings(), ids=ids, commands=COMMANDS)
    assert isinstance(accepted, accept_message.Accepted)
    cancel_item.cancel_item(tx, accepted.inbox_id, holder="script")


def _leave(tx: Tx, _world: World, ids: Ids) -> int:
    place = one_shot_source("one")
    held = accounts.take_connector(tx, platform="local", account=place.account or "", holder="script")
    assert held is not None
    said = inbound("hello", source=place)
    accept_message.accept_message(tx, said, settings=Settings(), ids=ids, commands=COMMANDS)
    accounts.release_connector(tx, held)
    return retire_address.retire_addresses(tx, settings=Settings(), limit=10)


def _surface(world: World) -> switch_session.Surface:
    key = SessionKey("agent:main:telegram:dm:ana")
    return switch_session.Surface(key=key, source=dm(), person=world.ana)


def _other_surface(world: World) -> switch_session.Surface:
    key = SessionKey("agent:main:matrix:dm:ana")
    return replace(_surface(world), key=key, source=replace(dm(), platform="matrix"))


def _owner_of(tx: Tx, session_id: str) -> int:
    return sessions.get_session(tx, session_id).owner_id


def _asked(tx: Tx, world: World) -> PersonId:
    return approvals.get_approval(tx, world.approval_id).person_id


def _person_of(tx: Tx, begun: begin_turn.BegunTurn) -> PersonId:
    person_id = turns.get_turn(tx, begun.turn_id).person_id
    assert person_id is not None
    return PersonId(person_id)


def _after(*works: Scenario) -> Scenario:
    """Return a scenario that runs several; the last one is under test."""
    return lambda tx, world, ids: [work(tx, world, ids) for work in works]


def _enter(holder: str) -> Scenario:
    def enter(tx: Tx, _world: World, _ids: Ids) -> object:
        record_heartbeat.enter_node(tx, holder=holder, kind="gateway", host="here", pid=1, version="0")
        return holder

    return enter


def _answer_all(tx: Tx, _world: World, ids: Ids) -> object:
    waiting = inbox.list_commands(tx)
    return [inbox_items.answer_command(tx, each.id, reply="nothing", ids=ids) for each in waiting]


def _preview(tx: Tx, world: World, ids: Ids) -> outbox.Delivery | None:
    held = show_preview.open_preview(tx, world.connector, world.running.turn_id, ids=ids)
    assert held is not None
    return held


def _show_preview(tx: Tx, world: World, ids: Ids) -> object:
    held = _preview(tx, world, ids)
    assert held is not None
    show_preview.record_preview(tx, world.connector, held, Sent(message_id="7"))
    return held


def _flush(tx: Tx, world: World, _ids: Ids) -> object:
    return flush_session.flush_session(tx, world.talk, settings=RESETTING) is not None


def _ask_title(tx: Tx, world: World, _ids: Ids) -> object:
    return title_session.request_title(tx, world.talk) is not None


def _begin_title(tx: Tx, world: World, _ids: Ids) -> begin_turn.BegunTurn:
    begun = begin_turn.begin_turn(tx, holder="h", session_id=world.talk)
    assert begun is not None
    assert begun.purpose == "title"
    return begun


def _finish_title(tx: Tx, world: World, ids: Ids) -> None:
    begun = _begin_title(tx, world, ids)
    reply = finish_turn.Reply(message=None, silent=True, unsaid=TITLE)
    finish_turn.finish_turn(tx, begun.held, reply=reply, ids=ids)


def _begin_flush(tx: Tx, world: World, _ids: Ids) -> begin_turn.BegunTurn:
    begun = begin_turn.begin_turn(tx, holder="h", session_id=world.talk)
    assert begun is not None
    assert begun.purpose == "flush"
    return begun


def _finish_flush(tx: Tx, world: World, ids: Ids) -> None:
    begun = _begin_flush(tx, world, ids)
    finish_turn.finish_turn(tx, begun.held, reply=REPLY, ids=ids)


def _calls(name: str, effect: StepEffect) -> Scenario:
    """Return a scenario in which Ben's turn calls a tool."""
    call = ToolCallPart(call_id=name, name=name, arguments={}, effect=effect)
    message = NewMessage(role="assistant", parts=(call,))
    return lambda tx, world, ids: record_step.record_calls(tx, world.running.held, message=message, ids=ids)


def _ask_in_words(tx: Tx, world: World, ids: Ids) -> object:
    running = world.running
    asked = record_step.ask_approval(tx, running.held, call_id="ask_user", question="Which?", ids=ids)
    return asked > 0


def _delegate(tx: Tx, world: World, ids: Ids) -> object:
    session_id = world.running.lease.session_id
    step = turns.get_step(tx, turn_id=world.running.turn_id, call_id="delegate")
    task = delegate_task.Task(key=step.idempotency_key, text="Count.", tools=["look"])
    return delegate_task.delegate_task(
        tx, ids, task, session_id=session_id, person_id=_owner_of(tx, session_id)
    )


def _finish_compress(tx: Tx, world: World, ids: Ids) -> None:
    begun = begin_turn.begin_turn(tx, holder="h", session_id=world.talk)
    assert begun is not None
    assert begun.purpose == "compress"
    reply = finish_turn.Reply(message=None, notice="done")
    finish_turn.finish_turn(tx, begun.held, reply=reply, ids=ids)


SCENARIOS: dict[str, Scenario] = {
    # -------------------------------------------------------------------------------- messages and turns
    "accept_message.accept_message": _accept("hello"),
    "accept_message.accept_message: first": _accept("hello", user="ana2", settings=PAIRING),
    "accept_message.accept_message: reset": _accept("hello", settings=RESETTING),
    "accept_message.accept_message: stranger": _accept("hello", user="another", settings=PAIRING),
    "accept_message.accept_message: stop": _accept("!stop hello", user="ben"),
    "accept_message.accept_message: stop waiting": _accept("!stop hello", user="cleo"),
    "accept_message.accept_message: rollback": _accept("!rollback hello", user="ben"),
    "accept_message.accept_message: group": lambda tx, _w, ids: accept_message.accept_message(
        tx, inbound("hello", source=group()), settings=Settings(), ids=ids, commands=COMMANDS
    ),
    "accept_message.accept_message: command": _accept("/reset"),
    "accept_message.accept_message: title": _accept("/title Tea"),
    "accept_message.accept_message: link": lambda tx, w, ids: accept_message.accept_message(
        tx,
        inbound(f"/link {w.link.code}", source=dm("second")),
        settings=Settings(),
        ids=ids,
        commands=COMMANDS,
    ),
    "accept_message.accept_message: search": _accept("/search tea"),
    "accept_message.accept_message: while flushing": _after(_flush, _begin_flush, _accept("hello")),
    "accept_message.accept_message: reset while flushing": _after(
        _flush, _begin_flush, _accept("hello", settings=RESETTING)
    ),
    "accept_message.accept_message: answer": _after(
        _calls("ask_user", "ask"), _ask_in_words, _accept("green", user="ben")
    ),
    "delegate_task.delegate_task": _after(_calls("delegate", "idempotent"), _delegate),
    "fail_turn.stop_session: with a task": _after(
        _calls("delegate", "idempotent"),
        _delegate,
        lambda tx, w, _ids: fail_turn.stop_session(tx, w.running.lease.session_id, holder="h"),
    ),
    "send_message.send_message": lambda tx, w, _ids: send_message.send_message(
        tx,
        send_message.OutgoingMessage(text="hi", route="origin", key="k"),
        session_id=w.running.lease.session_id,
        person_id=_owner_of(tx, w.running.lease.session_id),
    ),
    "flush_session.flush_session": _flush,
    "finish_turn.finish_turn: flush": _after(_flush, _finish_flush),
    "title_session.request_title": _ask_title,
    "title_session.set_model_title": lambda tx, w, _ids: title_session.set_model_title(tx, w.talk, TITLE),
    "finish_turn.finish_turn: title": _after(_ask_title, _finish_title),
    "accept_message.accept_message: while a title is made": _after(
        _ask_title, _begin_title, _accept("hello")
    ),
    "inbox_items.answer_command": _after(_accept("/search tea"), _answer_all),
    "append_message.append_message": lambda tx, w, _ids: append_message.append_message(
        tx, w.talk, text_message("user", "by hand"), person_id=w.ana.id
    ),
    "append_message.append_held": lambda tx, w, _ids: append_message.append_held(
        tx, w.running.held, text_message("assistant", "so")
    ),
    "open_session.open_session": lambda tx, w, ids: open_session.open_session(
        tx, ids, source=dm("new"), owner=w.ana, key=SessionKey("agent:main:telegram:dm:new")
    ),
    "begin_turn.begin_turn": lambda tx, _w, _ids: begin_turn.begin_turn(tx, holder="h"),
    "renew_turn.renew_turn": lambda tx, w, _ids: renew_turn.renew_turn(tx, w.running.held),
    "record_step.record_calls": lambda tx, w, ids: record_step.record_calls(
        tx,
        w.running.held,
        message=call_message(("e", "once"), ("f", "pure")),
        seen=[w.steering],
        ids=ids,
    ),
    "record_step.start_call": lambda tx, w, _ids: record_step.start_call(tx, w.running.held, call_id="c"),
    "record_step.record_result": lambda tx, w, _ids: record_step.record_result(
        tx, w.running.held, result=result_message("c")
    ),
    "record_step.record_result: long": lambda tx, w, _ids: record_step.record_result(
        tx, w.running.held, result=result_message("c"), whole=LONG
    ),
    "record_step.record_text": lambda tx, w, _ids: record_step.record_text(
        tx, w.running.held, start=0, text="So"
    ),
    "record_step.record_pause": lambda tx, w, _ids: record_step.record_pause(
        tx, w.running.held, reason="overloaded"
    ),
    "record_step.record_prompt": lambda tx, w, _ids: record_step.record_prompt(
        tx, w.running.held, model="m", prompt="p", tools="t"
    ),
    "record_step.record_context_usage": lambda tx, w, _ids: record_step.record_context_usage(
        tx,
        w.running.held,
        usage=ContextUsage(window=9, system=1, tools=1, history=1, attachments=1),
    ),
    "record_step.ask_approval": lambda tx, w, ids: record_step.ask_approval(
        tx, w.running.held, call_id="c", question="?", ids=ids
    ),
    "finish_turn.finish_turn": lambda tx, w, ids: finish_turn.finish_turn(
        tx, w.running.held, reply=replace(REPLY, seen=[w.steering]), ids=ids
    ),
    "fail_turn.fail_turn": lambda tx, w, ids: fail_turn.fail_turn(
        tx,
        w.running.held,
        failure=fail_turn.Failure(reason="no"),
        partial=text_message("assistant", "It is"),
        ids=ids,
    ),
    "fail_turn.fail_turn: again": lambda tx, w, ids: fail_turn.fail_turn(
        tx,
        w.running.held,
        failure=fail_turn.Failure(reason="no", retry_at=tx.now),
        ids=ids,
    ),
    "fail_turn.hand_back_turn": lambda tx, w, _ids: fail_turn.hand_back_turn(tx, w.running.held),
    "fail_turn.stop_turn: watched": _after(
        _show_preview,
        lambda tx, w, _ids: fail_turn.stop_turn(tx, w.running.held),
    ),
    "finish_turn.finish_turn: watched": _after(
        _show_preview,
        lambda tx, w, ids: finish_turn.finish_turn(tx, w.running.held, reply=REPLY, ids=ids),
    ),
    "show_preview.open_preview": _preview,
    "show_preview.record_preview": _show_preview,
    "keep_malformed.keep_malformed": lambda tx, _w, _ids: keep_malformed.keep_malformed(
        tx, platform="telegram", account="", ref="9", raw="{", reason="not JSON"
    ),
    "record_heartbeat.release_dead_node": lambda tx, world, _ids: record_heartbeat.release_dead_node(
        tx, holder=world.connector.holder
    ),
    "record_heartbeat.enter_node": _enter("h"),
    "record_heartbeat.leave_node": _after(
        _enter("h"), _enter("i"), lambda tx, _w, _ids: record_heartbeat.leave_node(tx, holder="h")
    ),
    "fail_turn.stop_turn": lambda tx, w, _ids: fail_turn.stop_turn(tx, w.running.held),
    "fail_turn.roll_back_turn": lambda tx, w, ids: fail_turn.roll_back_turn(tx, w.pure.held, ids=ids),
    "fail_turn.stop_session": lambda tx, w, _ids: fail_turn.stop_session(tx, w.waiting, holder="h"),
    "recover.recover": lambda tx, _w, ids: recover.recover(tx, ids=ids, settings=Settings()),
    # -------------------------------------------------------------------------------- deliveries
    "accounts.take_connector": lambda tx, _w, _ids: accounts.take_connector(
        tx, platform="matrix", account="", holder="h"
    ),
    "accounts.release_connector": lambda tx, w, _ids: accounts.release_connector(tx, w.connector),
    "claim_deliveries.claim_deliveries": lambda tx, w, _ids: deliveries.claim_deliveries(tx, w.connector),
    "claim_deliveries.record_piece": lambda tx, w, _ids: deliveries.record_piece(
        tx, w.sending, message_id="1"
    ),
    "claim_deliveries.record_delivery": lambda tx, w, _ids: deliveries.record_delivery(
        tx, w.connector, w.sending.id, Sent(message_id="1"), deduplicates=False
    ),
    "claim_deliveries.record_delivery: dead": lambda tx, w, _ids: deliveries.record_delivery(
        tx, w.connector, w.sending.id, Rejected(reason="gone", dead_address=True), deduplicates=False
    ),
    # -------------------------------------------------------------------------------- schedules, processes, questions
    "manage_schedule.create_schedule": lambda tx, w, _ids: manage_schedule.create_schedule(
        tx, replace(PLAN, name="milk"), person_id=w.ana.id, origin=dm()
    ),
    "manage_schedule.change_schedule": lambda tx, w, _ids: manage_schedule.change_schedule(
        tx, w.schedule_id, replace(PLAN, rule="every 3h"), person_id=w.ana.id
    ),
    "manage_schedule.revise_schedule": lambda tx, w, _ids: manage_schedule.revise_schedule(
        tx, w.schedule_id, person_id=w.ana.id, rule="every 3h"
    ),
    "manage_schedule.pause_schedule": lambda tx, w, _ids: manage_schedule.pause_schedule(
        tx, w.schedule_id, person_id=w.ana.id
    ),
    "manage_schedule.resume_schedule": lambda tx, w, _ids: manage_schedule.resume_schedule(
        tx, w.paused_id, person_id=w.ana.id
    ),
    "manage_schedule.end_schedule": lambda tx, w, _ids: manage_schedule.end_schedule(
        tx, w.schedule_id, person_id=w.ana.id
    ),
    "fire_schedule.fire_schedule": lambda tx, _w, ids: fire_schedule.fire_schedule(
        tx, ids, settings=Settings()
    ),
    "record_process.record_started": lambda tx, w, _ids: record_process.record_started(
        tx, PROCESS, session_id=w.talk, person_id=w.ana.id
    ),
    "record_process.record_spawned": lambda tx, w, _ids: record_process.record_spawned(
        tx, w.process_id, pid=7, pid_started_at=1, machine_boot_id="b"
    ),
    "record_process.record_end": lambda tx, w, _ids: record_process.record_end(
        tx, w.process_id, "exited", exit_code=1, tail="oh"
    ),
    "record_process.record_pattern": lambda tx, w, _ids: record_process.record_pattern(
        tx, w.process_id, pattern="oh", line="oh no"
    ),
    "record_process.record_progress": lambda tx, w, _ids: record_process.record_progress(
        tx, w.process_id, number=1, tail="…"
    ),
    "decide_approval.decide_approval": lambda tx, w, _ids: decide_approval.decide_approval(
        tx, w.approval_id, "approved", person_id=_asked(tx, w)
    ),
    "decide_approval.decide_approval: always": lambda tx, w, _ids: decide_approval.decide_approval(
        tx, w.approval_id, "approved", person_id=_asked(tx, w), scope="always"
    ),
    "decide_approval.announce_decision": lambda tx, w, ids: decide_approval.announce_decision(
        tx, w.approval_id, "approved", answered_at=Address(platform="web", chat_id="elsewhere"), ids=ids
    ),
    "manage_approval_rules.allow_by_rules": lambda tx, w, _ids: manage_approval_rules.allow_by_rules(
        tx, w.running.held, calls=[WISH]
    ),
    "manage_approval_rules.forget_rule": lambda tx, w, _ids: manage_approval_rules.forget_rule(
        tx, w.rule_id, person_id=_person_of(tx, w.running)
    ),
    "decide_approval.expire_approvals": lambda tx, _w, ids: decide_approval.expire_approvals(tx, ids=ids),
    # -------------------------------------------------------------------------------- people
    "manage_access.change_role": lambda tx, w, _ids: manage_access.change_role(
        tx, w.ana.id, "guest", by=w.owner.id
    ),
    "manage_access.block_person": lambda tx, w, _ids: manage_access.block_person(tx, w.ana.id, by=w.owner.id),
    "manage_access.unblock_person": _after(
        lambda tx, w, _ids: manage_access.block_person(tx, w.ana.id, by=w.owner.id),
        lambda tx, w, _ids: manage_access.unblock_person(tx, w.ana.id, by=w.owner.id),
    ),
    "manage_access.set_grant": lambda tx, w, _ids: manage_access.set_grant(tx, NEW_GRANT, by=w.owner.id),
    "manage_access.remove_grant": _after(
        lambda tx, w, _ids: manage_access.set_grant(tx, NEW_GRANT, by=w.owner.id),
        lambda tx, w, _ids: manage_access.remove_grant(tx, NEW_GRANT, by=w.owner.id),
    ),
    "set_home.set_home": lambda tx, w, _ids: set_home.set_home(tx, dm(), by=w.owner.id),
    "manage_access.resolve_source": lambda tx, _w, _ids: manage_access.resolve_source(
        tx, replace(dm("x"), user_id_alt="ana")
    ),
    "manage_access.learn_alias": lambda tx, _w, _ids: manage_access.learn_alias(
        tx, dm(), given="ana", alt="ana's phone"
    ),
    "pair_stranger.offer_pairing": lambda tx, _w, ids: pair_stranger.offer_pairing(tx, dm("nobody"), ids),
    "pair_stranger.approve_pairing": lambda tx, w, _ids: pair_stranger.approve_pairing(
        tx, w.request_no, by=w.owner.id
    ),
    "pair_stranger.deny_pairing": lambda tx, w, _ids: pair_stranger.deny_pairing(
        tx, w.request_no, by=w.owner.id
    ),
    "pair_stranger.expire_pairings": lambda tx, _w, _ids: pair_stranger.expire_pairings(tx),
    "link_accounts.offer_link": lambda tx, w, ids: link_accounts.offer_link(
        tx, ids, source=dm(), person_id=w.ana.id
    ),
    "link_accounts.enter_link": lambda tx, w, _ids: link_accounts.enter_link(
        tx, w.link.code, source=dm(), person_id=w.ana.id
    ),
    # -------------------------------------------------------------------------------- sessions
    "branch_session.undo": lambda tx, w, _ids: branch_session.undo(
        tx, w.talk, actor=Actor(person_id=w.ana.id, give_way=give_way)
    ),
    "branch_session.redo": lambda tx, w, _ids: branch_session.redo(
        tx, w.talk, actor=Actor(person_id=w.ana.id, give_way=give_way)
    ),
    "branch_session.switch_branch": lambda tx, w, _ids: branch_session.switch_branch(
        tx, w.talk, 0, actor=Actor(person_id=w.ana.id, give_way=give_way)
    ),
    "branch_session.retry": lambda tx, w, ids: branch_session.retry(
        tx,
        w.talk,
        actor=Actor(person_id=w.ana.id, give_way=give_way),
        rerun=branch_session.Rerun(ids=ids, source=dm()),
    ),
    "branch_session.edit": lambda tx, w, ids: branch_session.edit(
        tx,
        w.talk,
        3,
        (TextPart(text="better"),),
        actor=Actor(person_id=w.ana.id, give_way=give_way),
        rerun=branch_session.Rerun(ids=ids, source=dm()),
    ),
    "fork_session.fork_session": lambda tx, w, ids: fork_session(tx, ids, w.talk, person=w.ana, at=2),
    "cover_messages.cover": lambda tx, w, _ids: cover_messages.cover(
        tx, w.talk, replace(SUMMARY, last_seq=4), person_id=w.ana.id
    ),
    "cover_messages.cover_held": lambda tx, w, _ids: cover_messages.cover_held(
        tx,
        w.running.held,
        replace(SUMMARY, last_seq=1, notes=("Likes tea.",)),
        person_id=_owner_of(tx, w.running.lease.session_id),
    ),
    "cover_messages.uncover_last": lambda tx, w, _ids: cover_messages.uncover_last(
        tx, w.talk, person_id=w.ana.id
    ),
    "compress_command.compress_session": lambda tx, w, ids: compress_command.compress_session(
        tx, w.talk, focus="tea", person_id=w.ana.id, source=dm(), ids=ids
    ),
    "finish_turn.finish_turn: compress": _after(
        _accept("/compress"),
        _finish_compress,
    ),
    "cover_messages.uncover": lambda tx, w, _ids: cover_messages.uncover(
        tx, w.talk, w.cover_no, person_id=w.ana.id
    ),
    "pin_command.pin_message": lambda tx, w, _ids: pin_command.pin_message(tx, w.talk, 2, person_id=w.ana.id),
    "pin_command.pin_message: away": _after(
        lambda tx, w, _ids: pin_command.pin_message(tx, w.talk, 2, person_id=w.ana.id),
        lambda tx, w, _ids: pin_command.pin_message(tx, w.talk, 2, person_id=w.ana.id, pinned=False),
    ),
    "branch_session.pop_message": lambda tx, w, _ids: branch_session.pop_message(
        tx, w.talk, actor=Actor(person_id=w.ana.id, give_way=give_way)
    ),
    "branch_session.clear_messages": lambda tx, w, _ids: branch_session.clear_messages(
        tx, w.talk, actor=Actor(person_id=w.ana.id, give_way=give_way)
    ),
    "change_session.rename": lambda tx, w, _ids: change_session.rename(tx, w.talk, "Tea", person_id=w.ana.id),
    "change_session.pin": lambda tx, w, _ids: change_session.pin(tx, w.talk, person_id=w.ana.id),
    "change_session.archive": lambda tx, w, _ids: change_session.archive(tx, w.talk, person_id=w.ana.id),
    "change_session.delete": lambda tx, w, _ids: change_session.delete(
        tx, w.talk, actor=Actor(person_id=w.ana.id, give_way=give_way)
    ),
    "change_session.restore": lambda tx, w, _ids: change_session.restore(
        tx, w.binned, person_id=_owner_of(tx, w.binned)
    ),
    "change_session.close": lambda tx, w, _ids: change_session.close(
        tx, w.talk, person_id=w.ana.id, reason="done"
    ),
    "change_session.tag": lambda tx, w, _ids: change_session.tag(tx, w.talk, "tea", person_id=w.ana.id),
    "change_session.untag": _after(
        lambda tx, w, _ids: change_session.tag(tx, w.talk, "tea", person_id=w.ana.id),
        lambda tx, w, _ids: change_session.untag(tx, w.talk, "tea", person_id=w.ana.id),
    ),
    "change_session.set_project": lambda tx, w, _ids: change_session.set_project(
        tx, w.talk, w.project_id, person_id=w.ana.id
    ),
    "change_session.set_workspace": lambda tx, w, _ids: change_session.set_workspace(
        tx, w.talk, "/tea", person_id=w.ana.id
    ),
    "change_session.set_model": lambda tx, w, _ids: change_session.set_model(
        tx, w.talk, "m", person_id=w.ana.id
    ),
    "change_session.set_model_settings": lambda tx, w, _ids: change_session.set_model_settings(
        tx, w.talk, ModelSettings(temperature=0.5), person_id=w.ana.id
    ),
    "change_session.set_personality": lambda tx, w, _ids: change_session.set_personality(
        tx, w.talk, NEW, person_id=w.ana.id
    ),
    "change_session.mark_read": lambda tx, w, _ids: change_session.mark_read(
        tx, w.talk, person_id=w.ana.id, seq=2
    ),
    "change_session.save_draft": lambda tx, w, _ids: change_session.save_draft(
        tx, w.talk, "I was ab", person_id=w.ana.id, revision=0
    ),
    "manage_memory.remember": lambda tx, w, _ids: manage_memory.remember(
        tx, w.talk, "likes milk", person_id=w.ana.id
    ),
    "manage_memory.edit_memory": lambda tx, w, _ids: manage_memory.edit_memory(
        tx, w.talk, w.memory_id, "likes green tea", person_id=w.ana.id
    ),
    "manage_memory.forget": lambda tx, w, _ids: manage_memory.forget(tx, w.memory_id, person_id=w.ana.id),
    "manage_memory.undo_memory": lambda tx, w, _ids: (
        manage_memory.undo_memory(tx, w.talk, person_id=w.ana.id) is not None
    ),
    "manage_memory.undo_memory: an edit": _after(
        lambda tx, w, _ids: (
            manage_memory.edit_memory(tx, w.talk, w.memory_id, "likes milk", person_id=w.ana.id).is_new
        ),
        lambda tx, w, _ids: manage_memory.undo_memory(tx, w.talk, person_id=w.ana.id) is not None,
    ),
    "manage_project.create_project": lambda tx, w, _ids: manage_project.create_project(
        tx, manage_project.ProjectPlan(name="garden"), person_id=w.ana.id
    ),
    "manage_project.change_project": lambda tx, w, _ids: manage_project.change_project(
        tx, w.project_id, manage_project.ProjectPlan(name="garden"), person_id=w.ana.id
    ),
    "manage_project.archive_project": lambda tx, w, _ids: manage_project.archive_project(
        tx, w.project_id, person_id=w.ana.id
    ),
    "media.keep_blob": lambda tx, w, _ids: keep_blobs.keep_blob(tx, w.talk, BLOB._replace(hash="b" * 64)),
    "media.collect_blobs": _after(
        lambda tx, w, _ids: keep_blobs.keep_blob(tx, w.talk, BLOB),
        lambda tx, _w, _ids: keep_blobs.collect_blobs(tx),
    ),
    "purge_session.purge_session": lambda tx, w, _ids: purge_session.purge_session(
        tx, w.talk, person_id=w.ana.id
    ),
    "purge_session.empty_bin": lambda tx, _w, _ids: purge_session.empty_bin(tx),
    "purge_session.prune": lambda tx, w, _ids: purge_session.prune(tx, person_id=w.ana.id),
    "switch_session.start_new": lambda tx, w, ids: switch_session.start_new(tx, ids, _surface(w)),
    "switch_session.resume": lambda tx, w, _ids: switch_session.resume(tx, _surface(w), w.old),
    "switch_session.attach": lambda tx, w, _ids: switch_session.attach(tx, _other_surface(w), w.talk),
    "switch_session.detach": lambda tx, w, ids: switch_session.detach(tx, ids, _surface(w)),
    "program_sessions.enter_store": lambda tx, w, _ids: program_sessions.enter_store(tx, person_id=w.ana.id),
    "program_sessions.create_session": lambda tx, w, ids: program_sessions.create_session(
        tx,
        ids,
        source=LOCAL_CLI,
        person=w.ana,
        options=program_sessions.SessionOptions(title="Tea", project="new"),
    ),
    "program_sessions.ensure_session": lambda tx, w, ids: program_sessions.ensure_session(
        tx, ids, source=dm("program"), person=w.ana, settings=Settings()
    ),
    "import_session.import_session": lambda tx, w, ids: import_session.import_session(
        tx, ids, ARCHIVE, owner=w.ana
    ),
    "cancel_item.cancel_item": _cancel,
    "retire_address.retire_addresses": _leave,
}

PARTS: frozenset[str] = frozenset(
    {
        # Steps of the transactions above, which never run alone.
        "media.purge",
        "purge.hand_over",
        "purge.purge",
        "purge.require_purgeable",
        "purge.add_purge_events",
        "decide_approval.answer_question",
        "enter_session.enter_session",
        "begin_turn.take_seen",
        "change_session.move_to_bin",
        "record_step.close_steps",
        "record_step.close_unknown_steps",
        "claim_deliveries.settle",
        "fail_turn.find_rollback_point",
        "fail_turn.give_items_back",
        "fail_turn.give_up",
        "fail_turn.may_retry",
        "finish_turn.add_usage",
        "finish_turn.end_items",
        "flush_session.give_way",
        "inbox_items.request_turn",
        "inbox_items.queue_item",
        "inbox_items.end_item",
        "finish_turn.end_turn",
        "record_step.deliver",
        "queue_delivery.queue_delivery",
        "queue_delivery.queue_reply",
        "session_guard.require_turn_lease",
        "session_guard.lock_idle",
        "session_guard.require_idle",
        "session_guard.require_owner",
        "media.keep_text",
        "manage_access.require_owner",
        "manage_memory.get_of_chat",
        "pair_stranger.redeem",
        "pair_stranger.issue_code",
        "manage_project.ensure_project",
        "switch_session.list_audiences",
        # The search index is disposable and has its own writer and tests.
        "index_messages.clear_index",
        "index_messages.index_step",
        "merge_segments.merge_is_due",
        "merge_segments.merge_step",
    }
)
