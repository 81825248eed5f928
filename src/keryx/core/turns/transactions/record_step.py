"""Record what a running turn does, as it does it. Each call is one short transaction, checked against the lease.

The calls of a message are stored in one commit before any of them starts; a call that may run only once is started
only once; every call gets one result.
"""

from collections.abc import Sequence

from keryx.core.approvals.rules.approval import APPROVAL_LIFETIME, ApprovalQuestion
from keryx.core.approvals.tables import approvals
from keryx.core.context.rules.gauge import Gauge
from keryx.core.conversations.rules.message import NewMessage, ToolCallPart, ToolResultPart
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.tables import feed
from keryx.core.conversations.transactions.append_message import Appended, append_held
from keryx.core.conversations.transactions.session_guard import require_turn_lease
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.transactions.queue_delivery import queue_delivery
from keryx.core.deliveries.views.reply_addresses import reply_addresses
from keryx.core.media.rules import RESULT_TYPE, LongResult
from keryx.core.media.transactions import keep_text
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.rules.turn import counts_as_activity
from keryx.core.turns.tables import leases, turns
from keryx.core.turns.transactions.begin_turn import take_seen
from keryx.core.values.turn_states import StepEffect
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Tx
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
class CallAlreadyEnded:
    """The call has its one result; this one was dropped."""


def record_calls(
    tx: Tx, held: TurnLease, *, message: NewMessage, seen: Sequence[int] = (), ids: Ids
) -> Appended:
    """Store an assistant's message with all its calls; ``seen`` are steering items the model had read by then."""
    turn = take_seen(tx, held, require_turn_lease(tx, held), seen)
    is_activity = counts_as_activity(turn.purpose)
    appended = append_held(tx, held, message, is_activity=is_activity)
    for call in message.parts:
        if isinstance(call, ToolCallPart):
            _add_step(tx, turn, call, call_seq=appended.seq, ids=ids)
    turns.drop_chunks(tx, held.turn_id)
    feed.add_event(tx, held.session_id, "step", held.turn_id)
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


def start_call(tx: Tx, held: TurnLease, *, call_id: str) -> Started | NotStarted:
    """Commit to running a call; after a crash nobody else will, unless it is pure or idempotent."""
    require_turn_lease(tx, held)
    step = turns.get_step(tx, turn_id=held.turn_id, call_id=call_id)
    if not turns.start_step(tx, turn_id=held.turn_id, call_id=call_id):
        return NotStarted()
    feed.add_event(tx, held.session_id, "step", held.turn_id)
    return Started(idempotency_key=step.idempotency_key)


def record_result(
    tx: Tx, held: TurnLease, *, result: NewMessage, whole: LongResult | None = None
) -> Appended | CallAlreadyEnded:
    """Store a call's one result, and what it was cut from, if it was; a second one is dropped."""
    part = result.parts[0] if len(result.parts) == 1 else None
    if result.role != "tool" or not isinstance(part, ToolResultPart):
        raise InvalidValue("A call's result is a message of role 'tool' with one ToolResultPart.")
    require_turn_lease(tx, held)
    if turns.get_step(tx, turn_id=held.turn_id, call_id=part.call_id).result_seq is not None:
        return CallAlreadyEnded()
    if whole is not None:
        keep_text(tx, held.session_id, whole.text, media_type=RESULT_TYPE)
    appended = append_held(tx, held, result)
    turns.end_step(tx, turn_id=held.turn_id, call_id=part.call_id, state="done", result_seq=appended.seq)
    feed.add_event(tx, held.session_id, "step", held.turn_id)
    return appended


def record_text(tx: Tx, held: TurnLease, *, start: int, text: str) -> None:
    """Keep a piece of what the turn is saying, for whoever comes back before it is done."""
    require_turn_lease(tx, held)
    turns.add_chunk(tx, held.turn_id, start=start, text=text)


def record_pause(tx: Tx, held: TurnLease, *, reason: str | None) -> None:
    """Note why the turn does nothing for now; None when it goes on."""
    require_turn_lease(tx, held)
    turns.set_pause(tx, held.turn_id, reason)
    feed.add_event(tx, held.session_id, "turn", held.turn_id)


def record_prompt(tx: Tx, held: TurnLease, *, model: str | None, prompt: str, tools: str) -> None:
    """Note what exactly the turn ran with, and keep both texts by their content as long as the session is there."""
    require_turn_lease(tx, held)
    prompt_hash = keep_text(tx, held.session_id, prompt, media_type="text/plain")
    tools_hash = keep_text(tx, held.session_id, tools, media_type="application/json")
    turns.set_prompt(tx, held.turn_id, model=model, prompt_hash=prompt_hash, tools_hash=tools_hash)


def record_gauge(tx: Tx, held: TurnLease, *, gauge: Gauge) -> None:
    """Note what the turn's last question was made of."""
    require_turn_lease(tx, held)
    turns.set_gauge(tx, held.turn_id, gauge)


def ask_approval(tx: Tx, held: TurnLease, *, call_id: str, question: ApprovalQuestion | str, ids: Ids) -> int:
    """Ask the turn's person about a call, let go of the session, and wait; returns the approval's id.

    It is asked on every surface that shows the conversation, and the first answer counts. A question that is a text
    is put as it is, and no lasting yes can be given to it.
    """
    turn = require_turn_lease(tx, held)
    turns.get_step(tx, turn_id=held.turn_id, call_id=call_id)
    if turn.person_id is None or turn.origin is None:
        raise InvalidValue(f"Turn {turn.id} runs for nobody, so there is nobody to ask about {call_id!r}.")
    expires_at = tx.now + APPROVAL_LIFETIME
    approval_id = approvals.add_approval(
        tx,
        session_id=held.session_id,
        turn_id=held.turn_id,
        call_id=call_id,
        person_id=turn.person_id,
        question=question if isinstance(question, str) else question.text,
        covers=None if isinstance(question, str) else question.covers,
        expires_at=expires_at,
    )
    told = question if isinstance(question, str) else question.told(approval_id, expires_at=expires_at)
    turns.wait(tx, held.turn_id)
    _put(tx, turn, turn.origin, told, ids=ids)
    leases.release_lease(tx, held.lease)
    feed.add_event(tx, held.session_id, "approval", approval_id)
    feed.add_event(tx, held.session_id, "turn", held.turn_id)
    return approval_id


def _put(tx: Tx, turn: turns.Turn, origin: Source, question: str, *, ids: Ids) -> None:
    """Queue a question for where its turn was asked, and for every attached surface."""
    asked_at = Address.of(origin)
    for address in reply_addresses(tx, turn):
        if address != asked_at and address.platform == LOCAL_CLI.platform:
            continue  # a terminal shows what waits for an answer by itself, and nothing that has one
        queue_delivery(
            tx,
            question,
            to=address,
            key=ids.token(),
            kind="question",
            session_id=turn.session_id,
            turn_id=turn.id,
            reply_to=origin.message_id if address == asked_at else None,
        )
