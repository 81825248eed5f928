"""Begin a turn: take the session, claim what it answers, and put that into the transcript.

Whoever calls this owns the session until the lease is released or lost. A message already in the transcript (its
turn was lost) is not appended again, and calls a lost turn left open go over to this one.
"""

from collections.abc import Sequence

from keryx.core.approvals.tables import approvals
from keryx.core.conversations.rules.message import NewMessage, Role
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import branch_paths, branches, feed, sessions
from keryx.core.conversations.transactions.append_message import append_held
from keryx.core.deliveries.tables import outbox
from keryx.core.people.tables import people
from keryx.core.turns.rules.busy import claimable
from keryx.core.turns.rules.inbox import InboxKind
from keryx.core.turns.rules.lease import Lease, TurnLease
from keryx.core.turns.rules.turn import yields_to_others
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.views.ready_sessions import list_ready
from keryx.core.values.turn_states import TurnId, TurnPurpose
from keryx.store.database import ReadTx, Tx
from keryx.values import dataclass

CANDIDATES = 8
"""How many ready sessions are looked at in one call, in case others are faster."""

NOT_QUIET = "something else came first"

_ROLES: dict[InboxKind, Role] = {"process": "system", "approval": "system"}
_PURPOSES: dict[InboxKind, TurnPurpose] = {"schedule": "schedule", "process": "process"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunTurn:
    """A turn to run."""

    held: TurnLease
    purpose: TurnPurpose
    answers: tuple[inbox.InboxItem, ...]
    resumed: bool
    """It goes on after a person's answer, or with calls that a lost turn left open."""
    has_failed: bool = False
    """The last attempt at what it answers failed; a crash is no failure."""

    @property
    def turn_id(self) -> TurnId:
        """The turn that began."""
        return self.held.turn_id

    @property
    def lease(self) -> Lease:
        """The lease of its session."""
        return self.held.lease


def begin_turn(tx: Tx, *, holder: str, session_id: SessionId | None = None) -> BegunTurn | None:
    """Begin the longest waiting turn, of this session or of any; None when there is nothing to do now."""
    candidates = list_ready(tx, limit=CANDIDATES) if session_id is None else [session_id]
    for candidate in candidates:
        begun = _begin_in(tx, candidate, holder=holder)
        if begun is not None:
            return begun
    return None


def _begin_in(tx: Tx, session_id: SessionId, *, holder: str) -> BegunTurn | None:
    session = sessions.lock_session(tx, session_id)
    ready = _without_own(tx, inbox.list_ready(tx, session_id))
    live = turns.find_live_turn(tx, session_id)
    if live is not None:
        # One that runs belongs to its holder, or, if that was lost, to `recover` before anybody else.
        return _go_on(tx, live, ready, holder=holder) if live.state == "waiting" else None
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
        # What Keryx itself asks is nobody's question, and a task's answer goes back to the call that gave it.
        origin=None if yields_to_others(purpose) or last.purpose == "task" else last.source,
    )
    held = TurnLease(lease=lease, turn_id=turn_id)
    adopted = _adopt_steps(tx, session_id, turn_id=turn_id, branch_no=session.active_branch_no)
    outbox.adopt_held(tx, session_id=session_id, turn_id=turn_id)
    for item in items:
        _take_item(tx, held, item)
    feed.add_event(tx, session_id, "turn", turn_id)
    return BegunTurn(
        held=held,
        purpose=purpose,
        answers=items,
        resumed=adopted,
        has_failed=has_failed,
    )


def _purpose(last: inbox.InboxItem) -> TurnPurpose:
    match last.purpose:
        case "flush" | "title" | "compress":
            return last.purpose
        case _:
            return _PURPOSES.get(last.kind, "reply")


def _without_own(tx: Tx, ready: list[inbox.InboxItem]) -> list[inbox.InboxItem]:
    """Leave Keryx's own requests out where anything else waits: that goes first.

    A request for a title waits on; one to flush is dropped, because all of it is flushed when it is quiet again.
    """
    others = [item for item in ready if not item.is_own]
    if not others:
        # One at a time; the title is quick.
        return [item for item in ready if item.purpose == "title"] or ready
    for item in ready:
        if item.purpose == "flush":
            inbox.finish(tx, item.id, fate="cancelled", note=NOT_QUIET)
            feed.add_event(tx, item.session_id, "inbox", item.id)
    return others


def _next_items(
    tx: Tx, session_id: SessionId, ready: Sequence[inbox.InboxItem]
) -> tuple[inbox.InboxItem, ...]:
    """Return what the next turn answers; if nothing yet, the session is looked at again when something may be."""
    retry_at = max((item.ready_at for item in ready if item.attempts), default=tx.now)
    if retry_at > tx.now and not any(item.busy_mode in ("interrupt", "rollback") for item in ready):
        # What came in behind waits with it: answers keep the order of the questions.
        inbox.postpone(tx, session_id, ready_at=retry_at)
        return ()
    # What stands in the transcript comes before what does not, so it is answered first, though asked for later.
    ready = sorted(ready, key=lambda item: item.purpose != "rerun")
    claim = claimable([item.waiting for item in ready], now=tx.now)
    if not claim.items:
        if claim.wait_until is not None:
            inbox.postpone(tx, session_id, ready_at=claim.wait_until)
        return ()
    claimed, head = {item.id for item in claim.items}, ready[0]
    if head.purpose == "compress":
        return (head,)  # it is no question, so nothing is answered with it
    # What stands in the transcript already is before the eyes of whoever answers next, so it is answered with it;
    # of one person, as all that a turn answers, because its tools are theirs.
    return tuple(
        item
        for item in ready
        if item.id in claimed
        or (item.seq is not None and item.purpose != "compress" and item.person_id == head.person_id)
    )


def _adopt_steps(tx: Tx, session_id: SessionId, *, turn_id: TurnId, branch_no: int) -> bool:
    """Take over the open calls that the shown branch holds; say whether there were any."""
    left_open = turns.list_open_steps(tx, session_id)
    if not left_open:
        return False
    path = branches.list_path(tx, session_id=session_id, branch_no=branch_no)
    shown = [step for step in left_open if branch_paths.is_on_path(tx, path, step.call_seq)]
    for step in shown:
        turns.adopt_step(tx, step, turn_id=turn_id)
        approvals.adopt(tx, from_turn_id=step.turn_id, call_id=step.call_id, turn_id=turn_id)
    return bool(shown)


def _go_on(tx: Tx, turn: turns.Turn, ready: Sequence[inbox.InboxItem], *, holder: str) -> BegunTurn | None:
    """A turn that waits goes on only with the answer it waits for; everything else waits with it."""
    answer = next((item for item in ready if item.kind == "approval"), None)
    lease = None if answer is None else leases.take_lease(tx, SessionId(turn.session_id), holder=holder)
    if answer is None or lease is None:
        return None
    turns.go_on(tx, turn.id, lease)
    inbox.claim(tx, answer, turn_id=turn.id, seq=None)
    feed.add_event(tx, turn.session_id, "inbox", answer.id)
    feed.add_event(tx, turn.session_id, "turn", turn.id)
    return BegunTurn(
        held=TurnLease(lease=lease, turn_id=turn.id), purpose=turn.purpose, answers=(answer,), resumed=True
    )


def take_seen(tx: Tx, held: TurnLease, turn: turns.Turn, seen: Sequence[int]) -> turns.Turn:
    """Claim the items that the model had read by the step that commits now, and return the turn as it is then.

    The answer goes to where the last of them came from.
    """
    found = (inbox.find_item(tx, inbox_id) for inbox_id in sorted(seen))
    items = [item for item in found if item and (item.state, item.session_id) == ("ready", turn.session_id)]
    for item in items:
        _take_item(tx, held, item)
    if not items:
        return turn
    turns.set_origin(tx, turn.id, origin=items[-1].source, person_id=items[-1].person_id)
    return turns.get_turn(tx, turn.id)


def _take_item(tx: Tx, held: TurnLease, item: inbox.InboxItem) -> None:
    """Claim an item for a turn and put it into the transcript, unless it stands there from before."""
    seq = item.seq
    if seq is None:
        seq = append_held(tx, held, message_of(tx, item)).seq
    inbox.claim(tx, item, turn_id=held.turn_id, seq=seq)
    feed.add_event(tx, held.session_id, "inbox", item.id)


def message_of(tx: ReadTx, item: inbox.InboxItem) -> NewMessage:
    """Return what an item says, as the message that stands in the transcript when a turn has read it."""
    return NewMessage(
        role=_ROLES.get(item.kind, "user"),
        parts=item.parts,
        author=_author(tx, item),
        author_id=item.person_id,
    )


def _author(tx: ReadTx, item: inbox.InboxItem) -> str | None:
    """Whose name stands on the message: in a group people must be told apart."""
    if item.source.user_name:
        return item.source.user_name
    return None if item.person_id is None else people.get_person(tx, item.person_id).name
