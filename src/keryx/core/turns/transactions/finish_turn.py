"""Finish a turn: store its answer, queue the deliveries, and end its inbox items.

All or nothing; nothing for a holder whose lease is lost. So one reply is one visible message.
"""

from collections.abc import Sequence
from typing import Literal

from keryx.core.conversations.rules.message import NewMessage, TextPart, tool_call_count
from keryx.core.conversations.tables import feed, session_changes, sessions
from keryx.core.conversations.transactions.append_message import append_held
from keryx.core.conversations.transactions.session_guard import require_turn_lease
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import outbox
from keryx.core.deliveries.transactions.queue_delivery import queue_reply
from keryx.core.deliveries.views.reply_addresses import reply_addresses
from keryx.core.schedules import tables as schedules
from keryx.core.turns.rules.inbox import Fate
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.rules.turn import counts_as_activity
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.begin_turn import take_seen
from keryx.core.turns.transactions.inbox_items import end_item
from keryx.core.turns.transactions.record_step import close_steps, deliver
from keryx.core.turns.transactions.title_session import request_title, set_model_title
from keryx.core.values.turn_states import TurnState
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

NOT_HERE = "(answered elsewhere)"
CUT_OFF = "(cut off at the model's limit)"
"""The note under an answer that reached the model's output limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The end of a turn. The message of a silent turn is stored and not delivered."""

    message: NewMessage | None
    silent: bool = False
    to: Sequence[Address] | None = None
    """The resolved route of a schedule; None for the chat of the question."""
    seen: Sequence[int] = ()
    """The ids of the steering items that the model has read."""
    notice: str | None = None
    """A text for the chat of the question. The transcript does not contain it."""
    unsaid: NewMessage | None = None
    """The answer to a request of Keryx itself. The transcript does not contain it, but its usage counts."""
    wants_title: bool = False
    """Whether to ask the model for a title, if the session has none from a person or a model."""

    def __post_init__(self) -> None:
        if self.message is not None and tool_call_count(self.message.parts):
            raise InvalidValue(
                "a turn's last message makes no calls: record them, and their results, before it"
            )


def finish_turn(tx: Tx, held: TurnLease, *, reply: Reply, ids: Ids) -> None:
    """End a turn with its answer, or raise ``LeaseLost``."""
    turn = take_seen(tx, held, require_turn_lease(tx, held), reply.seen)
    close_steps(tx, held)
    if reply.message is not None:
        append_held(tx, held, reply.message, is_activity=counts_as_activity(turn.purpose))
        if not reply.silent:
            is_whole = reply.message.finish_reason != "length"
            parts = reply.message.parts if is_whole else (*reply.message.parts, TextPart(text=CUT_OFF))
            deliver(tx, turn, parts, to=reply_addresses(tx, turn, to=reply.to), ids=ids)
    if reply.notice is not None and turn.origin is not None:
        queue_reply(tx, turn.origin, reply.notice, ids=ids, session_id=turn.session_id, turn_id=turn.id)
    add_usage(tx, turn, reply.unsaid)
    if reply.unsaid is not None and turn.purpose == "title":
        set_model_title(tx, held.session_id, reply.unsaid)
    # The reply has replaced its preview rows. End the others: the answer went elsewhere, or nowhere.
    outbox.end_previews(tx, held.session_id, (TextPart(text=NOT_HERE),))
    end_items(tx, turn, fate="answered")
    if turn.purpose == "reply":
        sessions.take_reset_reason(tx, held.session_id)
        if reply.wants_title:
            request_title(tx, held.session_id)
    end_turn(tx, held, state="finished")


def end_turn(tx: Tx, held: TurnLease, *, state: TurnState, reason: str | None = None) -> None:
    """End a turn and release its lease."""
    turns.end_turn(tx, held.turn_id, state=state, reason=reason)
    leases.release_lease(tx, held.lease)
    feed.add_event(tx, held.session_id, "turn", held.turn_id)


def add_usage(tx: Tx, turn: turns.Turn, answer: NewMessage | None) -> None:
    """Add the usage of an answer that is in no transcript to its turn and session: it was paid for."""
    if answer is not None:
        turns.add_usage(tx, turn.id, answer)
        sessions.count_unsaid(tx, turn.session_id, answer)


def end_items(tx: Tx, turn: turns.Turn, *, fate: Fate, note: str | None = None) -> None:
    """End the items that a turn has claimed. Of answered items the last counts as answered, the others as merged."""
    items = inbox.list_of_turn(tx, turn.id)
    # The answer to an approval, with which the turn was resumed, is no question.
    last_id = max((item.id for item in items if item.kind != "approval"), default=0)
    for item in items:
        merged = fate == "answered" and item.id != last_id
        end_item(tx, item, fate="merged" if merged else fate, note=note or f"turn {turn.id}")
        if item.purpose == "flush":
            # Also after a failure: only later messages need another flush, not those of this turn.
            last_seq = sessions.get_session(tx, turn.session_id).last_seq
            session_changes.set_flushed_seq(tx, turn.session_id, last_seq)
        if item.kind == "schedule":
            # A stopped turn counts as a failed fire.
            state: Literal["finished", "failed"] = "finished" if fate == "answered" else "failed"
            schedule_id = schedules.end_fire_of_inbox(tx, item.id, state=state, note=note)
            if schedule_id is not None:
                feed.add_event(tx, turn.session_id, "fire", schedule_id)
