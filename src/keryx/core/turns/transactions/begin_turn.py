"""Begin a turn: take the session's lease, claim inbox items, and append their messages to the transcript.

A message that a lost turn has appended is not appended again, and the open calls of a lost turn move to this one.
"""

from collections.abc import Sequence

from keryx.core.approvals import tables as approvals
from keryx.core.conversations.rules.message import NewMessage, Role
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import branch_paths, branches, feed, sessions
from keryx.core.conversations.transactions.append_message import append_held
from keryx.core.deliveries.tables import outbox
from keryx.core.people.tables import people
from keryx.core.turns.rules.busy import claimable
from keryx.core.turns.rules.inbox import OWN_PURPOSES, InboxKind
from keryx.core.turns.rules.lease import Lease, TurnLease
from keryx.core.turns.rules.turn import yields_to_others
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.inbox_items import end_item
from keryx.core.turns.views.pending_work import list_ready
from keryx.core.values.turn_states import TurnId, TurnPurpose
from keryx.store.database import ReadTx, Tx
from keryx.values import dataclass

CANDIDATES = 8
"""How many ready sessions one call tries, in case other gateways are faster."""

OTHER_FIRST = "another item came first"

_ROLES: dict[InboxKind, Role] = {"process": "system", "approval": "system"}
_PURPOSES: dict[InboxKind, TurnPurpose] = {"schedule": "schedule", "process": "process"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunTurn:
    """A turn that has begun."""

    held: TurnLease
    purpose: TurnPurpose
    answers: tuple[inbox.InboxItem, ...]
    resumed: bool
    """Whether it continues after a person's answer, or with the open calls of a lost turn."""
    has_failed: bool = False
    """Whether the last attempt at its items failed; a crash is no failure."""

    @property
    def turn_id(self) -> TurnId:
        """The turn's id."""
        return self.held.turn_id

    @property
    def lease(self) -> Lease:
        """The lease of its session."""
        return self.held.lease


def begin_turn(
    tx: Tx, *, holder: str, session_id: SessionId | None = None, zone: str | None = None
) -> BegunTurn | None:
    """Begin the turn that has waited longest, in this session or in any; return None if none may begin now.

    The agent is told the date and time in ``zone``; without one, it is told neither.
    """
    candidates = list_ready(tx, limit=CANDIDATES) if session_id is None else [session_id]
    for candidate in candidates:
        begun = _begin_in(tx, candidate, holder=holder, zone=zone)
        if begun is not None:
            return begun
    return None


def _begin_in(tx: Tx, session_id: SessionId, *, holder: str, zone: str | None) -> BegunTurn | None:
    session = sessions.lock_session(tx, session_id)
    ready = _without_requests(tx, inbox.list_ready(tx, session_id))
    live = turns.find_live_turn(tx, session_id)
    if live is not None:
        # A running turn belongs to its holder. If the holder is lost, `recover` ends the turn first.
        return _resume(tx, live, ready, holder=holder) if live.state == "waiting" else None
    items = _next_items(tx, session_id, ready)
    lease = leases.take_lease(tx, session_id, holder=holder) if items else None
    if lease is None:
        return None
    has_failed = turns.find_trouble(tx, session_id) is not None
    last = items[-1]
    purpose = _purpose(last)
    turn_id = turns.add_turn(
        tx,
        lease,
        branch_no=session.active_branch_no,
        purpose=purpose,
        person_id=last.person_id,
        # Requests of Keryx itself have no origin. A task's answer goes to the call that delegated the task.
        origin=None if yields_to_others(purpose) or last.purpose == "task" else last.source,
        zone=zone,
    )
    held = TurnLease(lease=lease, turn_id=turn_id)
    adopted = _adopt_steps(tx, session_id, turn_id=turn_id, branch_no=session.active_branch_no)
    outbox.move_previews(tx, session_id=session_id, turn_id=turn_id)
    for item in items:
        _take_item(tx, held, item)
    feed.add_event(tx, session_id, "turn", turn_id)
    return BegunTurn(held=held, purpose=purpose, answers=items, resumed=adopted, has_failed=has_failed)


def _purpose(last: inbox.InboxItem) -> TurnPurpose:
    match last.purpose:
        case "flush" | "title" | "compress":
            return last.purpose
        case _:
            return _PURPOSES.get(last.kind, "reply")


def _without_requests(tx: Tx, ready: list[inbox.InboxItem]) -> list[inbox.InboxItem]:
    """Leave out Keryx's own requests if any other item waits.

    A title request keeps waiting. A flush request is cancelled, because a later one covers the same messages.
    """
    others = [item for item in ready if item.purpose not in OWN_PURPOSES]
    if not others:
        # One at a time. The title goes first, because it is quick.
        return [item for item in ready if item.purpose == "title"] or ready
    for item in ready:
        if item.purpose == "flush":
            end_item(tx, item, fate="cancelled", note=OTHER_FIRST)
    return others


def _next_items(
    tx: Tx, session_id: SessionId, ready: Sequence[inbox.InboxItem]
) -> tuple[inbox.InboxItem, ...]:
    """Return the items of the next turn; if none may be claimed yet, delay the session's items."""
    retry_at = max((item.ready_at for item in ready if item.attempts), default=tx.now)
    if retry_at > tx.now and not any(item.busy_mode in ("interrupt", "rollback") for item in ready):
        # Later items wait too, so that answers keep the order of the questions.
        inbox.postpone(tx, session_id, ready_at=retry_at)
        return ()
    # Items that are in the transcript come first, even if they were requested later.
    ready = sorted(ready, key=lambda item: item.purpose != "rerun")
    claim = claimable([item.waiting for item in ready], now=tx.now)
    if not claim.items:
        if claim.wait_until is not None:
            inbox.postpone(tx, session_id, ready_at=claim.wait_until)
        return ()
    claimed, head = {item.id for item in claim.items}, ready[0]
    if head.purpose == "compress":
        return (head,)  # not a question, so it is claimed alone
    # The model sees items that are already in the transcript. Claim these items too, but only those of the head item's
    # person, because the turn has this person's tools.
    return tuple(
        item
        for item in ready
        if item.id in claimed
        or (item.seq is not None and item.purpose != "compress" and item.person_id == head.person_id)
    )


def _adopt_steps(tx: Tx, session_id: SessionId, *, turn_id: TurnId, branch_no: int) -> bool:
    """Move the open calls on the active branch to this turn; return whether there were any."""
    left_open = turns.list_open_steps(tx, session_id)
    if not left_open:
        return False
    path = branches.list_path(tx, session_id=session_id, branch_no=branch_no)
    shown = [step for step in left_open if branch_paths.is_on_path(tx, path, step.call_seq)]
    for step in shown:
        turns.adopt_step(tx, step, turn_id=turn_id)
        approvals.move_to_turn(tx, from_turn_id=step.turn_id, call_id=step.call_id, turn_id=turn_id)
    return bool(shown)


def _resume(tx: Tx, turn: turns.Turn, ready: Sequence[inbox.InboxItem], *, holder: str) -> BegunTurn | None:
    """Resume a waiting turn if its answer has arrived; all other items keep waiting."""
    answer = next((item for item in ready if item.kind == "approval"), None)
    lease = None if answer is None else leases.take_lease(tx, SessionId(turn.session_id), holder=holder)
    if answer is None or lease is None:
        return None
    held = turns.resume(tx, turn.id, lease)
    inbox.claim(tx, answer, turn_id=turn.id, seq=None)
    feed.add_event(tx, turn.session_id, "inbox", answer.id)
    feed.add_event(tx, turn.session_id, "turn", turn.id)
    return BegunTurn(held=held, purpose=turn.purpose, answers=(answer,), resumed=True)


def take_seen(tx: Tx, held: TurnLease, turn: turns.Turn, seen: Sequence[int]) -> turns.Turn:
    """Claim the steering items that the model has read, and return the turn with the origin of the last one."""
    found = (inbox.find_item(tx, inbox_id) for inbox_id in sorted(seen))
    items = [item for item in found if item and (item.state, item.session_id) == ("ready", turn.session_id)]
    for item in items:
        _take_item(tx, held, item)
    if not items:
        return turn
    turns.set_origin(tx, turn.id, origin=items[-1].source, person_id=items[-1].person_id)
    return turns.get_turn(tx, turn.id)


def _take_item(tx: Tx, held: TurnLease, item: inbox.InboxItem) -> None:
    """Claim an item for a turn, and append its message unless the transcript has it."""
    seq = append_held(tx, held, message_of(tx, item)).seq if item.seq is None else item.seq
    inbox.claim(tx, item, turn_id=held.turn_id, seq=seq)
    feed.add_event(tx, held.session_id, "inbox", item.id)


def message_of(tx: ReadTx, item: inbox.InboxItem) -> NewMessage:
    """Return an item's message for the transcript."""
    author = item.source.user_name or None
    if author is None and item.person_id is not None:
        author = people.get_person(tx, item.person_id).name
    role = _ROLES.get(item.kind, "user")
    return NewMessage(role=role, parts=item.parts, author=author, author_id=item.person_id)
