"""End a turn without an answer: failed, stopped by a person, or rolled back for a new start.

Its messages so far stay, every open call gets a result, and every claimed item gets a fate or is retried. A failure is
reported in the chat of the question and on the session's other surfaces.
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
from keryx.core.deliveries.transactions.queue_delivery import queue_reply
from keryx.core.deliveries.views.reply_addresses import reply_addresses
from keryx.core.turns.rules.busy import ROLLBACK_REFUSED, rollback_allowed
from keryx.core.turns.rules.inbox import may_try_again
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.rules.turn import counts_as_activity
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.finish_turn import add_usage, end_items, end_turn
from keryx.core.turns.transactions.inbox_items import end_item
from keryx.core.turns.transactions.record_step import close_steps, close_unknown_steps, deliver
from keryx.core.turns.views.session_history import list_effects
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

STOPPED = "(stopped)"
"""The note under the preview of an answer that was stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a turn failed, for people to read, and when to retry."""

    reason: str
    retry_at: Micros | None = None
    to: Sequence[Address] | None = None
    """The resolved failure route of a schedule; None for the chat of the question."""


def fail_turn(
    tx: Tx, held: TurnLease, *, failure: Failure, partial: NewMessage | None = None, ids: Ids
) -> Literal["again", "failed"]:
    """End a turn that failed, and return whether its items are retried; raise ``LeaseLost`` for a late holder.

    After too many attempts there is no retry, whatever ``failure`` says.
    """
    turn = require_turn_lease(tx, held)
    if failure.retry_at is not None and may_retry(tx, turn):
        close_unknown_steps(tx, held)
        add_usage(tx, turn, partial)
        give_items_back(tx, turn, ready_at=failure.retry_at)
        end_turn(tx, held, state="failed", reason=failure.reason)
        return "again"
    give_up(tx, held, turn, failure=failure, partial=partial, ids=ids)
    end_turn(tx, held, state="failed", reason=failure.reason)
    return "failed"


def hand_back_turn(tx: Tx, held: TurnLease) -> None:
    """Let another gateway continue a turn from its last step, because this one ends; the attempt does not count."""
    turn = require_turn_lease(tx, held)
    close_unknown_steps(tx, held)
    give_items_back(tx, turn, ready_at=tx.now, uncounted=True)
    end_turn(tx, held, state="lost", reason="handed back")


def stop_turn(tx: Tx, held: TurnLease, *, partial: NewMessage | None = None) -> None:
    """End a turn that a person stopped; its text so far stays."""
    turn = require_turn_lease(tx, held)
    _keep(tx, held, turn, partial)
    said = () if partial is None else tuple(part for part in partial.parts if isinstance(part, TextPart))
    outbox.end_previews(tx, held.session_id, (*said, TextPart(text=STOPPED)))
    end_items(tx, turn, fate="cancelled", note="stopped")
    end_turn(tx, held, state="stopped", reason="stopped")


def roll_back_turn(
    tx: Tx, held: TurnLease, *, partial: NewMessage | None = None, ids: Ids
) -> Literal["rolled back", "stopped"]:
    """Undo the messages of a turn with a branch, so that the next turn answers its items and the new message together.

    If the turn's effects cannot be undone, stop the turn instead, and tell the person who asked.
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
    add_usage(tx, turn, partial)
    _branch_after(tx, held.session_id, seq=point)
    give_items_back(tx, turn, ready_at=tx.now, kept_seq=point)
    end_turn(tx, held, state="stopped", reason="rolled back")
    return "rolled back"


def stop_session(tx: Tx, session_id: SessionId, *, holder: str) -> Literal["stopping", "stopped", "idle"]:
    """Stop the session's turn and the tasks it delegated: ask the holder of a running turn, end a waiting turn now."""
    sessions.lock_session(tx, session_id)
    for task in inbox.list_tasks(tx, session_id):
        sessions.lock_session(tx, task.session_id)
        if _stop_live(tx, SessionId(task.session_id), holder=holder) == "idle":
            end_item(tx, task, fate="cancelled", note="stopped")
    return _stop_live(tx, session_id, holder=holder)


def _stop_live(tx: Tx, session_id: SessionId, *, holder: str) -> Literal["stopping", "stopped", "idle"]:
    """Stop the turn of a locked session."""
    turn = turns.find_live_turn(tx, session_id)
    if turn is None:
        return "idle"
    if turn.state == "running":
        if turns.request_stop(tx, session_id):
            feed.add_event(tx, session_id, "turn", turn.id)
        return "stopping"
    lease = leases.take_lease(tx, session_id, holder=holder)
    assert lease is not None, "a waiting turn holds no lease, and the session is locked"
    held = turns.resume(tx, turn.id, lease)
    for item in inbox.list_ready(tx, session_id):
        if item.kind == "approval":
            # Claim an answer that just arrived; it would begin a turn of its own.
            inbox.claim(tx, item, turn_id=turn.id, seq=None)
    stop_turn(tx, held)
    return "stopped"


def find_rollback_point(tx: Tx, turn: turns.Turn) -> int | None:
    """Return the last message that the turn began with, if everything after it may be undone, or None.

    Calls that the turn has taken over from a lost turn count as its own.
    """
    asked = sorted(item.seq for item in inbox.list_of_turn(tx, turn.id) if item.seq is not None)
    if not asked:
        return None
    point = asked[0]
    while point + 1 in asked:
        point += 1
    effects = list_effects(tx, session_id=turn.session_id, branch_no=turn.branch_no, after_seq=point)
    return point if rollback_allowed(effects) else None


def may_retry(tx: Tx, turn: turns.Turn) -> bool:
    """Return whether all items of the turn have attempts left."""
    return all(may_try_again(item.attempts) for item in inbox.list_of_turn(tx, turn.id))


def give_up(
    tx: Tx, held: TurnLease, turn: turns.Turn, *, failure: Failure, partial: NewMessage | None, ids: Ids
) -> None:
    """Fail all items of a turn visibly; its text so far stays."""
    _keep(tx, held, turn, partial)
    text = f"I could not answer: {failure.reason}\n/retry tries again."
    deliver(tx, turn, text, to=reply_addresses(tx, turn, to=failure.to), ids=ids)
    end_items(tx, turn, fate="failed", note=failure.reason)


def give_items_back(
    tx: Tx, turn: turns.Turn, *, ready_at: Micros, kept_seq: int | None = None, uncounted: bool = False
) -> None:
    """Make the items of a turn ready again; those after ``kept_seq`` leave the transcript."""
    for item in inbox.list_of_turn(tx, turn.id):
        if item.kind == "approval":
            # The approval keeps the answer; the item would begin another turn.
            end_item(tx, item, fate="merged", note=f"turn {turn.id}")
        else:
            stays = item.seq is not None and (kept_seq is None or item.seq <= kept_seq)
            inbox.give_back(
                tx, item.id, ready_at=ready_at, seq=item.seq if stays else None, uncounted=uncounted
            )
            feed.add_event(tx, turn.session_id, "inbox", item.id)


def _keep(tx: Tx, held: TurnLease, turn: turns.Turn, partial: NewMessage | None) -> None:
    """Close open calls and store the text so far, without unfinished calls."""
    close_steps(tx, held)
    parts = partial.parts if partial is not None else ()
    kept = tuple(part for part in parts if not isinstance(part, ToolCallPart))
    if partial is not None and kept:
        is_activity = counts_as_activity(turn.purpose)
        append_held(tx, held, replace(partial, parts=kept), is_activity=is_activity)
    else:
        add_usage(tx, turn, partial)


def _branch_after(tx: Tx, session_id: SessionId, *, seq: int) -> None:
    """Switch the session to a new branch that ends with this message."""
    session = sessions.lock_session(tx, session_id)
    path = branches.list_path(tx, session_id=session_id, branch_no=session.active_branch_no)
    no = session.last_branch_no + 1
    branches.add_branch(tx, branch_at(path, seq, session_id=session_id, no=no, reason="rollback"))
    kept = branches.list_path(tx, session_id=session_id, branch_no=no)
    branches.activate(tx, session_id=session_id, no=no, message_count=branch_paths.count_path(tx, kept))
    feed.add_event(tx, session_id, "branch", no)
