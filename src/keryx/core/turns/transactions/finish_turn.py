"""Finish a turn: the answer into the transcript, deliveries with complete addresses, fates for what it answered.

All of it or nothing, and nothing for a holder whose lease is lost: one logical reply is one visible message.
"""

from collections.abc import Sequence
from typing import Literal

from keryx.core.conversations.rules.message import NewMessage, TextPart, tool_call_count
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import feed, session_changes, sessions
from keryx.core.conversations.transactions.append_message import append_held
from keryx.core.conversations.transactions.session_guard import require_turn_lease
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import outbox
from keryx.core.deliveries.transactions.queue_delivery import queue_delivery, queue_reply
from keryx.core.deliveries.views.reply_addresses import reply_addresses
from keryx.core.schedules import tables as schedules
from keryx.core.turns.rules.inbox import Fate
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.rules.turn import counts_as_activity
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.begin_turn import take_seen
from keryx.core.turns.transactions.close_steps import close_steps
from keryx.core.turns.transactions.title_session import ask_title, set_model_title
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

NOT_HERE = "(answered elsewhere)"
CUT_OFF = "(cut off at the model's limit)"
"""What stands under an answer that used up all it was given to say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a turn ends with; a silent turn says nothing, and its message, if any, stays in the transcript."""

    message: NewMessage | None
    silent: bool = False
    to: Sequence[Address] | None = None
    """Where it goes instead of back to who asked: a schedule's route, already resolved."""
    seen: Sequence[int] = ()
    """Steering items the answer takes into account."""
    notice: str | None = None
    """What is told where it was asked, and is no part of the conversation."""
    unsaid: NewMessage | None = None
    """What was answered to Keryx itself; it stands in no transcript, but what it used counts."""
    wants_title: bool = False
    """Whether a model may be asked what a young session is about."""

    def __post_init__(self) -> None:
        if self.message is not None and tool_call_count(self.message.parts):
            raise InvalidValue(
                "a turn's last message makes no calls: record them, and their results, before it"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedTurn:
    """What became of it."""

    seq: int | None
    deliveries: tuple[int, ...]


def finish_turn(tx: Tx, held: TurnLease, *, reply: Reply, ids: Ids) -> FinishedTurn:
    """End a turn with its answer; raises ``LeaseLost`` for a late holder."""
    turn = take_seen(tx, held, require_turn_lease(tx, held), reply.seen)
    close_steps(tx, held)
    seq = None
    deliveries: list[int] = []
    if reply.message is not None:
        is_activity = counts_as_activity(turn.purpose)
        seq = append_held(tx, held, reply.message, is_activity=is_activity).seq
        if not reply.silent:
            deliveries = _deliver(tx, turn, reply.message, to=reply.to, ids=ids)
    if reply.notice is not None and turn.origin is not None:
        deliveries.append(
            queue_reply(tx, turn.origin, reply.notice, ids=ids, session_id=turn.session_id, turn_id=turn.id)
        )
    if reply.unsaid is not None:
        count_unsaid(tx, turn, reply.unsaid)
    # The reply took over what it was watched in; where it was said elsewhere, or not at all, that ends as well.
    outbox.release_held(tx, held.turn_id, (TextPart(text=NOT_HERE),))
    end_items(tx, turn, fate="answered")
    turns.end_turn(tx, held.turn_id, state="finished")
    if turn.purpose == "reply":
        sessions.take_reset_reason(tx, held.session_id)
        if reply.wants_title:
            ask_title(tx, held.session_id)
    leases.release_lease(tx, held.lease)
    feed.add_event(tx, held.session_id, "turn", held.turn_id)
    return FinishedTurn(seq=seq, deliveries=tuple(deliveries))


def count_unsaid(tx: Tx, turn: turns.Turn, answer: NewMessage) -> None:
    """Count what a running turn's answer to Keryx itself used; the answer to a request for a title is the title."""
    turns.count_unsaid(tx, turn.id, answer)
    sessions.count_unsaid(tx, turn.session_id, answer)
    if turn.purpose == "title":
        set_model_title(tx, SessionId(turn.session_id), answer)


def _deliver(
    tx: Tx, turn: turns.Turn, message: NewMessage, *, to: Sequence[Address] | None, ids: Ids
) -> list[int]:
    """Queue the reply for where it was asked, with copies for attached surfaces, or for where its route leads."""
    asked_at = None if turn.origin is None else Address.of(turn.origin)
    is_whole = message.finish_reason != "length"
    parts = message.parts if is_whole else (*message.parts, TextPart(text=CUT_OFF))
    queued: list[int] = []
    for address, said_as in reply_addresses(tx, turn, to=to).items():
        added = queue_delivery(
            tx,
            parts,
            to=address,
            key=ids.token(),
            kind=said_as,
            session_id=turn.session_id,
            turn_id=turn.id,
            reply_to=turn.origin.message_id if turn.origin and address == asked_at else None,
        )
        queued.append(added)
    return queued


def end_items(tx: Tx, turn: turns.Turn, *, fate: Fate, note: str | None = None) -> None:
    """Give everything a turn had claimed its fate: the last one was answered, those before it merged into it."""
    items = inbox.list_of_turn(tx, turn.id)
    # A person's word that the turn went on with is no question to answer.
    last_id = max((item.id for item in items if item.kind != "approval"), default=0)
    for item in items:
        merged = fate == "answered" and item.id != last_id
        inbox.finish(tx, item.id, fate="merged" if merged else fate, note=note or f"turn {turn.id}")
        if item.purpose == "flush":
            # Failed or not: what this turn added itself is nothing to flush, and only what comes later is.
            last_seq = sessions.get_session(tx, turn.session_id).last_seq
            session_changes.set_flushed_seq(tx, turn.session_id, last_seq)
        if item.kind == "schedule":
            _end_fire(tx, turn, item, state="finished" if fate == "answered" else "failed", note=note)
        feed.add_event(tx, turn.session_id, "inbox", item.id)


def _end_fire(
    tx: Tx, turn: turns.Turn, item: inbox.InboxItem, *, state: Literal["finished", "failed"], note: str | None
) -> None:
    """Record how the run of a schedule's fire went; one that was stopped did not finish."""
    fire = schedules.end_fire_of_inbox(tx, item.id, state=state, note=note)
    if fire is not None:
        feed.add_event(tx, turn.session_id, "fire", fire.schedule_id)
