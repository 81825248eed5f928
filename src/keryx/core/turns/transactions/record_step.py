"""Record the steps of a running turn. Each function is one short transaction that checks the lease.

All calls of a message are committed before the first starts. A ``once`` call starts once. Every call gets one result.
"""

from collections.abc import Mapping, Sequence

from keryx.core.approvals import tables as approvals
from keryx.core.approvals.rules.approval import APPROVAL_LIFETIME, ApprovalQuestion
from keryx.core.context.rules.context_usage import ContextUsage
from keryx.core.conversations.rules.message import NewMessage, Part, ToolCallPart, ToolResultPart
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.tables import feed
from keryx.core.conversations.transactions.append_message import Appended, append_held
from keryx.core.conversations.transactions.session_guard import require_turn_lease
from keryx.core.deliveries.rules.delivery import DeliveryKind
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.transactions.queue_delivery import queue_delivery
from keryx.core.deliveries.views.reply_addresses import reply_addresses
from keryx.core.media.rules import RESULT_TYPE, LongResult
from keryx.core.media.transactions import keep_text
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.rules.turn import UNKNOWN_RESULT, after_crash, counts_as_activity
from keryx.core.turns.tables import leases, turns
from keryx.core.turns.transactions.begin_turn import take_seen
from keryx.core.values.turn_states import StepState
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

NOT_RUN = "This was not run: the turn ended before it."
NO_RESULT = (
    "It is unknown whether this ran to its end: the turn ended after it began and before its result came."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The call may run now. The key is the same after a crash."""

    idempotency_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStarted:
    """The call must not run now: it has run, may have run, or was not approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAlreadyEnded:
    """The call has a result; this one was dropped."""


def record_calls(
    tx: Tx, held: TurnLease, *, message: NewMessage, seen: Sequence[int] = (), ids: Ids
) -> Appended:
    """Store an assistant message with its calls; ``seen`` are the ids of the steering items that the model has read."""
    turn = take_seen(tx, held, require_turn_lease(tx, held), seen)
    appended = append_held(tx, held, message, is_activity=counts_as_activity(turn.purpose))
    for call in message.parts:
        if not isinstance(call, ToolCallPart):
            continue
        if not turns.add_step(tx, turn, call, call_seq=appended.seq, idempotency_key=ids.token()):
            raise InvalidValue(
                f"Turn {turn.id} has a call {call.call_id!r} already; give each call its own id."
            )
    turns.drop_chunks(tx, held.turn_id)
    feed.add_event(tx, held.session_id, "step", held.turn_id)
    return appended


def start_call(tx: Tx, held: TurnLease, *, call_id: str) -> Started | NotStarted:
    """Record the start of a call. After a crash only a pure or idempotent call runs again."""
    require_turn_lease(tx, held)
    step = turns.get_step(tx, turn_id=held.turn_id, call_id=call_id)
    if not turns.start_step(tx, turn_id=held.turn_id, call_id=call_id):
        return NotStarted()
    feed.add_event(tx, held.session_id, "step", held.turn_id)
    return Started(idempotency_key=step.idempotency_key)


def record_result(
    tx: Tx, held: TurnLease, *, result: NewMessage, whole: LongResult | None = None
) -> Appended | CallAlreadyEnded:
    """Store a call's one result; ``whole`` is the full text of a shortened one. A second result is dropped."""
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


def close_steps(tx: Tx, held: TurnLease) -> None:
    """Close every open call of a turn that ends, with the reason as its result.

    A call whose start was committed may have run; its result says that this is unknown.
    """
    for step in turns.list_steps(tx, held.turn_id):
        if step.state == "called":
            _close(tx, held, step, output=NOT_RUN, state="done")
        elif step.state == "started":
            _close(tx, held, step, output=NO_RESULT, state="unknown")


def close_unknown_steps(tx: Tx, held: TurnLease) -> None:
    """Close the calls of a turn that may have run and must not run again; leave the others for the next turn."""
    for step in turns.list_steps(tx, held.turn_id):
        verdict = after_crash(step.effect, started=step.starts > 0, has_result=step.result_seq is not None)
        if verdict == "unknown":
            _close(tx, held, step, output=UNKNOWN_RESULT, state="unknown")


def _close(tx: Tx, held: TurnLease, step: turns.Step, *, output: str, state: StepState) -> None:
    result = ToolResultPart(call_id=step.call_id, name=step.name, output=output, is_error=True)
    appended = append_held(tx, held, NewMessage(role="tool", parts=(result,)))
    turns.end_step(tx, turn_id=step.turn_id, call_id=step.call_id, state=state, result_seq=appended.seq)


def record_text(tx: Tx, held: TurnLease, *, start: int, text: str) -> None:
    """Store a piece of the text so far, for clients that reconnect."""
    require_turn_lease(tx, held)
    turns.add_chunk(tx, held.turn_id, start=start, text=text)


def record_pause(tx: Tx, held: TurnLease, *, reason: str | None) -> None:
    """Record the reason of a pause; None ends the pause."""
    require_turn_lease(tx, held)
    turns.set_pause(tx, held.turn_id, reason)
    feed.add_event(tx, held.session_id, "turn", held.turn_id)


def record_prompt(tx: Tx, held: TurnLease, *, model: str | None, prompt: str, tools: str) -> None:
    """Record a turn's model, system prompt and tools; the texts are stored once by content."""
    require_turn_lease(tx, held)
    prompt_hash = keep_text(tx, held.session_id, prompt, media_type="text/plain")
    tools_hash = keep_text(tx, held.session_id, tools, media_type="application/json")
    turns.set_prompt(tx, held.turn_id, model=model, prompt_hash=prompt_hash, tools_hash=tools_hash)


def record_context_usage(tx: Tx, held: TurnLease, *, usage: ContextUsage) -> None:
    """Record the token counts of the turn's last model request."""
    require_turn_lease(tx, held)
    turns.set_context_usage(tx, held.turn_id, usage)


def ask_approval(tx: Tx, held: TurnLease, *, call_id: str, question: ApprovalQuestion | str, ids: Ids) -> int:
    """Ask the turn's person about a call, set the turn to waiting, and return the approval's id.

    Every surface of the conversation gets the question, and the first answer counts. A question that is a text allows
    no standing approval.
    """
    turn = require_turn_lease(tx, held)
    turns.get_step(tx, turn_id=held.turn_id, call_id=call_id)
    if turn.person_id is None or turn.origin is None:
        raise InvalidValue(f"Turn {turn.id} has no person to ask about {call_id!r}.")
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
    text = (
        question if isinstance(question, str) else question.with_answers(approval_id, expires_at=expires_at)
    )
    turns.wait(tx, held.turn_id)
    asked_at = Address.of(turn.origin)
    # Another terminal shows open questions by itself.
    addresses = [
        each for each in reply_addresses(tx, turn) if each == asked_at or each.platform != LOCAL_CLI.platform
    ]
    deliver(tx, turn, text, to=dict.fromkeys(addresses, "question"), ids=ids)
    leases.release_lease(tx, held.lease)
    feed.add_event(tx, held.session_id, "approval", approval_id)
    feed.add_event(tx, held.session_id, "turn", held.turn_id)
    return approval_id


def deliver(
    tx: Tx, turn: turns.Turn, content: str | tuple[Part, ...], *, to: Mapping[Address, DeliveryKind], ids: Ids
) -> None:
    """Queue a turn's text for its addresses; in the chat of the turn's message as a reply to the message."""
    asked_at = None if turn.origin is None else Address.of(turn.origin)
    for address, kind in to.items():
        queue_delivery(
            tx,
            content,
            to=address,
            key=ids.token(),
            kind=kind,
            session_id=turn.session_id,
            turn_id=turn.id,
            reply_to=turn.origin.message_id if turn.origin and address == asked_at else None,
        )
