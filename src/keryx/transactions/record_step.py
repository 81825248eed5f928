"""Record what a running turn does, as it does it. Each call is one short transaction, checked against the lease.

The calls of a message are stored in one commit before any of them starts; a call that may run only once is started
only once; every call gets one result.
"""

from collections.abc import Sequence

from keryx.domain.approval import APPROVAL_LIFETIME, Question
from keryx.domain.gauge import Gauge
from keryx.domain.lease import Lease
from keryx.domain.long_result import RESULT_TYPE, LongResult
from keryx.domain.message import NewMessage, TextPart, ToolCallPart, ToolResultPart
from keryx.domain.route import Address
from keryx.domain.source import LOCAL_CLI, Source
from keryx.domain.turn import StepEffect, TurnId, moves_last_activity
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.store.tables import approvals, feed, leases, outbox, turns
from keryx.transactions.append_message import Appended, append_held
from keryx.transactions.begin_turn import take_seen
from keryx.transactions.hold_turn import hold_turn
from keryx.transactions.keep_blobs import keep_text
from keryx.transactions.where_said import where_said
from keryx.values import dataclass

UNDECLARED: StepEffect = "once"
"""What a call is taken for whose effect nobody stated: it is never run twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The call may run now, under this key where the tool takes one; the key stays the same over crashes."""

    idempotency_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStarted:
    """The call has run, or may have, or was not allowed by who had to be asked: it must not run now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyEnded:
    """The call has its one result; this one was dropped."""


def record_calls(
    tx: Tx, lease: Lease, *, turn_id: TurnId, message: NewMessage, seen: Sequence[int] = (), ids: Ids
) -> Appended:
    """Store an assistant's message with all its calls; ``seen`` are steering items the model had read by then."""
    turn = take_seen(tx, lease, hold_turn(tx, lease, turn_id=turn_id), seen)
    is_activity = moves_last_activity(turn.purpose)
    appended = append_held(tx, lease, message, turn_id=turn_id, is_activity=is_activity)
    for call in message.parts:
        if isinstance(call, ToolCallPart):
            _add_step(tx, turn, call, call_seq=appended.seq, ids=ids)
    turns.drop_chunks(tx, turn_id)
    feed.add_event(tx, lease.session_id, "step", turn_id)
    return appended


def _add_step(tx: Tx, turn: turns.Turn, call: ToolCallPart, *, call_seq: int, ids: Ids) -> None:
    added = turns.add_step(
        tx,
        turn_id=turn.id,
        session_id=turn.session_id,
        call_id=call.call_id,
        name=call.name,
        effect=call.effect or UNDECLARED,
        idempotency_key=ids.token(),
        call_seq=call_seq,
    )
    if not added:
        raise InvalidValue(
            f"call id {call.call_id!r} was used before in turn {turn.id}: give each call its own"
        )


def start_call(tx: Tx, lease: Lease, *, turn_id: TurnId, call_id: str) -> Started | NotStarted:
    """Commit to running a call; after a crash nobody else will, unless it is pure or idempotent."""
    hold_turn(tx, lease, turn_id=turn_id)
    step = turns.get_step(tx, turn_id=turn_id, call_id=call_id)
    if not turns.start_step(tx, turn_id=turn_id, call_id=call_id):
        return NotStarted()
    feed.add_event(tx, lease.session_id, "step", turn_id)
    return Started(idempotency_key=step.idempotency_key)


def record_result(
    tx: Tx, lease: Lease, *, turn_id: TurnId, result: NewMessage, whole: LongResult | None = None
) -> Appended | AlreadyEnded:
    """Store a call's one result, and what it was cut from, if it was; a second one is dropped."""
    part = result.parts[0] if len(result.parts) == 1 else None
    if result.role != "tool" or not isinstance(part, ToolResultPart):
        raise InvalidValue("A call's result is a message of role 'tool' with one ToolResultPart.")
    hold_turn(tx, lease, turn_id=turn_id)
    if turns.get_step(tx, turn_id=turn_id, call_id=part.call_id).result_seq is not None:
        return AlreadyEnded()
    if whole is not None:
        keep_text(tx, lease.session_id, whole.text, media_type=RESULT_TYPE)
    appended = append_held(tx, lease, result, turn_id=turn_id)
    turns.end_step(tx, turn_id=turn_id, call_id=part.call_id, state="done", result_seq=appended.seq)
    feed.add_event(tx, lease.session_id, "step", turn_id)
    return appended


def record_text(tx: Tx, lease: Lease, *, turn_id: TurnId, start: int, text: str) -> None:
    """Keep a piece of what the turn is saying, for whoever comes back before it is done."""
    hold_turn(tx, lease, turn_id=turn_id)
    turns.add_chunk(tx, turn_id, start=start, text=text)


def record_pause(tx: Tx, lease: Lease, *, turn_id: TurnId, reason: str | None) -> None:
    """Note why the turn does nothing for now; None when it goes on."""
    hold_turn(tx, lease, turn_id=turn_id)
    turns.set_pause(tx, turn_id, reason)
    feed.add_event(tx, lease.session_id, "turn", turn_id)


def record_prompt(
    tx: Tx, lease: Lease, *, turn_id: TurnId, model: str | None, prompt: str, tools: str
) -> None:
    """Note what exactly the turn ran with, and keep both texts by their content as long as the session is there."""
    hold_turn(tx, lease, turn_id=turn_id)
    prompt_hash = keep_text(tx, lease.session_id, prompt, media_type="text/plain")
    tools_hash = keep_text(tx, lease.session_id, tools, media_type="application/json")
    turns.set_prompt(tx, turn_id, model=model, prompt_hash=prompt_hash, tools_hash=tools_hash)


def record_gauge(tx: Tx, lease: Lease, *, turn_id: TurnId, gauge: Gauge) -> None:
    """Note what the turn's last question was made of."""
    hold_turn(tx, lease, turn_id=turn_id)
    turns.set_gauge(tx, turn_id, gauge)


def ask_approval(
    tx: Tx, lease: Lease, *, turn_id: TurnId, call_id: str, question: Question | str, ids: Ids
) -> int:
    """Ask the turn's person about a call, let go of the session, and wait; returns the approval's id.

    It is asked on every surface that shows the conversation, and the first answer counts. A question that is a text
    is put as it is, and no lasting yes can be given to it.
    """
    turn = hold_turn(tx, lease, turn_id=turn_id)
    turns.get_step(tx, turn_id=turn_id, call_id=call_id)
    if turn.person_id is None or turn.origin is None:
        raise InvalidValue(f"Turn {turn_id} runs for nobody, so there is nobody to ask about {call_id!r}.")
    expires_at = tx.now + APPROVAL_LIFETIME
    approval_id = approvals.add_approval(
        tx,
        session_id=lease.session_id,
        turn_id=turn_id,
        call_id=call_id,
        person_id=turn.person_id,
        question=question if isinstance(question, str) else question.text,
        covers=None if isinstance(question, str) else question.covers,
        expires_at=expires_at,
    )
    told = question if isinstance(question, str) else question.told(approval_id, expires_at=expires_at)
    turns.wait(tx, turn_id)
    _put(tx, turn, turn.origin, told, ids=ids)
    leases.release_lease(tx, lease)
    feed.add_event(tx, lease.session_id, "approval", approval_id)
    feed.add_event(tx, lease.session_id, "turn", turn_id)
    return approval_id


def _put(tx: Tx, turn: turns.Turn, origin: Source, question: str, *, ids: Ids) -> None:
    """Queue a question for where its turn was asked, and for every attached surface."""
    asked_at = Address.of(origin)
    for address in where_said(tx, turn):
        if address != asked_at and address.platform == LOCAL_CLI.platform:
            continue  # a terminal shows what waits for an answer by itself, and nothing that has one
        asked = outbox.add_delivery(
            tx,
            address=address,
            kind="question",
            parts=(TextPart(text=question),),
            idempotency_key=ids.token(),
            session_id=turn.session_id,
            turn_id=turn.id,
            reply_to=origin.message_id if address == asked_at else None,
        )
        feed.add_event(tx, turn.session_id, "delivery", asked)
