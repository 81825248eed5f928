"""End a turn without an answer: failed, stopped by a person, or rolled back for a new start.

What it said and did so far stays, every open call gets a result, and everything it had claimed gets a fate or goes
back to be tried again. A failure is told where the question came from, and where else the conversation is shown.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from keryx.clock import Micros
from keryx.core.conversations.rules.branch import branch_at
from keryx.core.conversations.rules.message import NewMessage, TextPart, ToolCallPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import branch_paths, branches, feed, sessions
from keryx.core.conversations.transactions.append_message import append_held
from keryx.core.conversations.transactions.session_guard import require_turn_lease
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import outbox
from keryx.core.deliveries.transactions.queue_delivery import queue_delivery, queue_reply
from keryx.core.deliveries.views.reply_addresses import reply_addresses
from keryx.core.turns.rules.busy import ROLLBACK_REFUSED, rollback_allowed
from keryx.core.turns.rules.inbox import may_try_again
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.rules.turn import counts_as_activity
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.close_steps import close_steps, close_unknown_steps
from keryx.core.turns.transactions.finish_turn import end_items
from keryx.core.turns.views.turn_effects import list_effects
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

STOPPED = "(stopped)"
"""What stands under an answer that was shown while it was written, and stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a turn failed, in words a person can read, and when to try again, if at all."""

    reason: str
    retry_at: Micros | None = None
    to: Sequence[Address] | None = None
    """Where it is told instead of where it was asked: a schedule's failure route, already resolved."""


def fail_turn(
    tx: Tx, held: TurnLease, *, failure: Failure, partial: NewMessage | None = None, ids: Ids
) -> Literal["again", "failed"]:
    """End a turn that failed, and say whether what it answers is tried again; raises ``LeaseLost`` for a late holder.

    After too many tries it is not, whatever ``failure`` says.
    """
    turn = require_turn_lease(tx, held)
    if failure.retry_at is not None and may_be_tried_again(tx, turn):
        close_unknown_steps(tx, held)
        _count_unkept(tx, turn, partial)
        give_items_back(tx, turn, ready_at=failure.retry_at)
        _end(tx, held, turn, state="failed", reason=failure.reason)
        return "again"
    give_up(tx, held, turn, failure=failure, partial=partial, ids=ids)
    _end(tx, held, turn, state="failed", reason=failure.reason)
    return "failed"


def hand_back_turn(tx: Tx, held: TurnLease) -> None:
    """Let another gateway go on with a turn from its last step, because this one ends; that counts as no attempt."""
    turn = require_turn_lease(tx, held)
    close_unknown_steps(tx, held)
    give_items_back(tx, turn, ready_at=tx.now, uncounted=True)
    turns.end_turn(tx, turn.id, state="lost", reason="handed back")
    leases.release_lease(tx, held.lease)
    feed.add_event(tx, turn.session_id, "turn", turn.id)


def stop_turn(tx: Tx, held: TurnLease, *, partial: NewMessage | None = None) -> None:
    """End a turn that a person stopped; what it said so far stays."""
    turn = require_turn_lease(tx, held)
    _keep(tx, held, turn, partial)
    said = () if partial is None else tuple(part for part in partial.parts if isinstance(part, TextPart))
    outbox.release_held(tx, held.turn_id, (*said, TextPart(text=STOPPED)))
    end_items(tx, turn, fate="cancelled", note="stopped")
    _end(tx, held, turn, state="stopped", reason="stopped")


def roll_back_turn(
    tx: Tx, held: TurnLease, *, partial: NewMessage | None = None, ids: Ids
) -> Literal["rolled back", "stopped"]:
    """Drop what a turn said and did, as a branch, so that the next one answers its messages again with the new one.

    A turn that has done what cannot be taken back is stopped instead, and whoever asked is told.
    """
    turn = require_turn_lease(tx, held)
    point = find_rollback_point(tx, turn)
    if point is None:
        asker = next(
            (item for item in inbox.list_ready(tx, turn.session_id) if item.busy_mode == "rollback"), None
        )
        if asker is not None:
            queue_reply(tx, asker.source, ROLLBACK_REFUSED, ids=ids, session_id=turn.session_id)
        stop_turn(tx, held, partial=partial)
        return "stopped"
    close_steps(tx, held)
    _count_unkept(tx, turn, partial)
    _branch_after(tx, held.session_id, seq=point)
    give_items_back(tx, turn, ready_at=tx.now, kept_seq=point)
    _end(tx, held, turn, state="stopped", reason="rolled back")
    return "rolled back"


def stop_session(tx: Tx, session_id: SessionId, *, holder: str) -> Literal["stopping", "stopped", "idle"]:
    """Stop whatever turn the session has: a running one by asking its holder, a waiting one here and now.

    The tasks it gave away stop with it.
    """
    sessions.lock_session(tx, session_id)
    for task in inbox.list_tasks(tx, session_id):
        sessions.lock_session(tx, task.session_id)
        if _stop_live(tx, SessionId(task.session_id), holder=holder) == "idle":
            inbox.finish(tx, task.id, fate="cancelled", note="stopped")
            feed.add_event(tx, task.session_id, "inbox", task.id)
    return _stop_live(tx, session_id, holder=holder)


def _stop_live(tx: Tx, session_id: SessionId, *, holder: str) -> Literal["stopping", "stopped", "idle"]:
    """Stop the turn of a session that is locked."""
    turn = turns.find_live_turn(tx, session_id)
    if turn is None:
        return "idle"
    if turn.state == "running":
        if turns.request_stop(tx, session_id):
            feed.add_event(tx, session_id, "turn", turn.id)
        return "stopping"
    lease = leases.take_lease(tx, session_id, holder=holder)
    assert lease is not None, "a waiting turn holds no lease, and the session is locked"
    turns.go_on(tx, turn.id, lease)
    for item in inbox.list_ready(tx, session_id):
        if item.kind == "approval":
            # Answered a moment ago: it lets nothing go on any more, and alone it would begin a turn of its own.
            inbox.claim(tx, item, turn_id=turn.id, seq=None)
    stop_turn(tx, TurnLease(lease=lease, turn_id=turn.id))
    return "stopped"


def find_rollback_point(tx: Tx, turn: turns.Turn) -> int | None:
    """Return the message after which everything the turn said and did may be dropped, or None where nothing may.

    That is the last of the messages it began with. Calls of a lost turn that it went on with count as its own.
    """
    asked = sorted(item.seq for item in inbox.list_of_turn(tx, turn.id) if item.seq is not None)
    if not asked:
        return None
    point = asked[0]
    while point + 1 in asked:
        point += 1
    effects = list_effects(tx, session_id=turn.session_id, branch_no=turn.branch_no, after_seq=point)
    return point if rollback_allowed(effects) else None


def may_be_tried_again(tx: Tx, turn: turns.Turn) -> bool:
    """Say whether nothing that the turn answers has been tried too often."""
    return all(may_try_again(item.attempts) for item in inbox.list_of_turn(tx, turn.id))


def give_up(
    tx: Tx, held: TurnLease, turn: turns.Turn, *, failure: Failure, partial: NewMessage | None, ids: Ids
) -> None:
    """Let everything a turn had claimed fail visibly; what it said so far stays."""
    _keep(tx, held, turn, partial)
    asked_at = None if turn.origin is None or failure.to is not None else Address.of(turn.origin)
    for address, said_as in reply_addresses(tx, turn, to=failure.to).items():
        queue_delivery(
            tx,
            f"I could not answer: {failure.reason}\n/retry tries again.",
            to=address,
            key=ids.token(),
            kind=said_as,
            session_id=turn.session_id,
            turn_id=turn.id,
            reply_to=turn.origin.message_id if turn.origin and address == asked_at else None,
        )
    end_items(tx, turn, fate="failed", note=failure.reason)


def give_items_back(
    tx: Tx, turn: turns.Turn, *, ready_at: Micros, kept_seq: int | None = None, uncounted: bool = False
) -> None:
    """Let another turn answer what this one had claimed; what stands after ``kept_seq`` is to be said again."""
    for item in inbox.list_of_turn(tx, turn.id):
        if item.kind == "approval":
            # The answer is kept with the question; alone it would only begin a turn too many.
            inbox.finish(tx, item.id, fate="merged", note=f"turn {turn.id}")
        else:
            stays = item.seq is not None and (kept_seq is None or item.seq <= kept_seq)
            inbox.give_back(
                tx, item.id, ready_at=ready_at, seq=item.seq if stays else None, uncounted=uncounted
            )
        feed.add_event(tx, turn.session_id, "inbox", item.id)


def _keep(tx: Tx, held: TurnLease, turn: turns.Turn, partial: NewMessage | None) -> None:
    """Close what is open and keep what was said; calls that were only begun to be written are not kept."""
    close_steps(tx, held)
    said = (
        () if partial is None else tuple(part for part in partial.parts if not isinstance(part, ToolCallPart))
    )
    if partial is not None and said:
        is_activity = counts_as_activity(turn.purpose)
        append_held(tx, held, replace(partial, parts=said), is_activity=is_activity)
    else:
        _count_unkept(tx, turn, partial)


def _count_unkept(tx: Tx, turn: turns.Turn, partial: NewMessage | None) -> None:
    """Count what was used for words that stand in no transcript: they were paid for."""
    if partial is not None:
        turns.count_unsaid(tx, turn.id, partial)
        sessions.count_unsaid(tx, turn.session_id, partial)


def _end(
    tx: Tx, held: TurnLease, turn: turns.Turn, *, state: Literal["failed", "stopped"], reason: str
) -> None:
    turns.end_turn(tx, turn.id, state=state, reason=reason)
    leases.release_lease(tx, held.lease)
    feed.add_event(tx, turn.session_id, "turn", turn.id)


def _branch_after(tx: Tx, session_id: SessionId, *, seq: int) -> None:
    """Show a branch that ends with this message."""
    session = sessions.lock_session(tx, session_id)
    path = branches.list_path(tx, session_id=session_id, branch_no=session.active_branch_no)
    no = session.last_branch_no + 1
    branches.add_branch(tx, branch_at(path, seq, session_id=session_id, no=no, reason="rollback"))
    kept = branches.list_path(tx, session_id=session_id, branch_no=no)
    branches.activate(tx, session_id=session_id, no=no, message_count=branch_paths.count_path(tx, kept))
    feed.add_event(tx, session_id, "branch", no)
