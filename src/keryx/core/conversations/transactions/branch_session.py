"""Undo, redo, retry, edit and switch: other views of a transcript, of which nothing is changed.

Each makes a branch and can be taken back. None is done under a running turn. Afterwards
``message_count`` is the length of the path that is shown, and nothing waits to be run that is not on it.
"""

from collections.abc import Sequence

from keryx.core.conversations.rules.branch import (
    Branch,
    BranchReason,
    PathMessage,
    Segment,
    began_at,
    branch_at,
    edit_point,
    owner_of,
    path,
    redo_targets,
    retry_point,
    turn_starts,
    undo_point,
)
from keryx.core.conversations.rules.message import Message, NewMessage, Part, TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import branch_paths, branches, feed, messages, sessions
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.conversations.transactions.session_guard import Actor, lock_idle
from keryx.core.deliveries.tables import outbox
from keryx.core.turns.tables import inbox
from keryx.errors import NotFound
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

TAIL = 64
"""How many messages are read to find where the last turns began; doubled until they are found."""
TAKEN_BACK = "the message was taken back"
PREVIEW_TAKEN_BACK = (TextPart(text="(taken back)"),)
"""What becomes of an answer that was seen growing, and whose message was taken back before it was whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branched:
    """The session shows this branch now; ``inbox_id`` is what will run on it, if anything was asked for."""

    branch_no: int
    message_count: int
    inbox_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToUndo:
    """There are fewer turns than that, namely so many; nothing changed."""

    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToRedo:
    """Nothing was undone here; nothing changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToRetry:
    """Nobody has said anything yet; nothing changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """Ask the agent to answer again, and where: with it ``retry`` and ``edit`` queue a turn, without it they do not."""

    ids: Ids
    source: Source


def undo(tx: Tx, session_id: SessionId, *, actor: Actor, turns: int = 1) -> Branched | NothingToUndo:
    """Take back the last turns: show a branch that ends before them."""
    session = lock_idle(tx, session_id, actor=actor)
    shown = _shown(tx, session)
    tail = _tail_with_turns(tx, shown, turns)
    point = undo_point(tail, turns=turns)
    if point is None:
        return NothingToUndo(turns=len(turn_starts(tail)))
    return _branch(tx, session, shown, point, reason="undo")


def redo(tx: Tx, session_id: SessionId, *, actor: Actor) -> Branched | NothingToRedo:
    """Go back to what was shown before the last undo, retry or edit."""
    session = lock_idle(tx, session_id, actor=actor)
    known = branches.list_branches(tx, session_id)
    no = session.active_branch_no
    began = began_at(known, session_id=session_id, no=no)
    for target in redo_targets(known, session_id=session_id, no=no):
        # What an earlier undo left shows nothing that is not shown here.
        last = branch_paths.list_tail(tx, path(known, session_id=session_id, no=target), limit=1)
        if last and last[0].seq > began:
            return _show(tx, session_id, known, target)
    return NothingToRedo()


def switch_branch(tx: Tx, session_id: SessionId, no: int, *, actor: Actor) -> Branched:
    """Show another branch of the session; raises ``NotFound`` for one that is not there."""
    lock_idle(tx, session_id, actor=actor)
    known = branches.list_branches(tx, session_id)
    if not any((branch.session_id, branch.no) == (session_id, no) for branch in known):
        raise NotFound(f"Session {session_id} has no branch {no}.")
    return _show(tx, session_id, known, no)


def retry(
    tx: Tx, session_id: SessionId, *, actor: Actor, rerun: Rerun | None = None
) -> Branched | NothingToRetry:
    """Take back the last answer and, with ``rerun``, have the same messages answered again."""
    session = lock_idle(tx, session_id, actor=actor)
    shown = _shown(tx, session)
    point = retry_point(_tail_with_turns(tx, shown, 1))
    if point is None:
        return NothingToRetry()
    branched = _branch(tx, session, shown, point, reason="retry")
    waiting = [item.id for item in inbox.list_ready(tx, session_id) if item.seq == point]
    if waiting:
        # Its turn has not begun yet, or was lost: it runs on the new branch, once.
        return Branched(
            branch_no=branched.branch_no, message_count=branched.message_count, inbox_id=waiting[0]
        )
    return _run_again(tx, session_id, branched, seq=point, person_id=actor.person_id, rerun=rerun)


def edit(
    tx: Tx,
    session_id: SessionId,
    seq: int,
    parts: tuple[Part, ...],
    *,
    actor: Actor,
    rerun: Rerun | None = None,
) -> Branched:
    """Say something else at a message that is shown: a branch that ends before it, then the new text.

    With ``rerun``, a changed user message is answered anew. Raises ``InvalidValue`` for a message not on the path.
    """
    session = lock_idle(tx, session_id, actor=actor)
    shown = _shown(tx, session)
    around = branch_paths.list_tail(tx, shown, limit=2, last_seq=seq)
    point = edit_point(around, seq=seq)
    old = _message_at(tx, shown, seq)
    branched = _branch(tx, session, shown, point, reason="edit")
    new = NewMessage(role=old.role, parts=parts, author=old.author, author_id=old.author_id)
    appended = append_message(tx, session_id, new, person_id=actor.person_id)
    branched = Branched(branch_no=branched.branch_no, message_count=branched.message_count + 1)
    wanted = rerun if old.role == "user" else None
    return _run_again(tx, session_id, branched, seq=appended.seq, person_id=actor.person_id, rerun=wanted)


def _shown(tx: Tx, session: sessions.Session) -> list[Segment]:
    return branches.list_path(tx, session_id=session.id, branch_no=session.active_branch_no)


def _tail_with_turns(tx: Tx, shown: Sequence[Segment], turns: int) -> list[PathMessage]:
    """Return as much of the path's end as surely holds the beginnings of its last ``turns`` turns, or all of it."""
    limit = TAIL
    while True:
        tail = branch_paths.list_tail(tx, shown, limit=limit)
        # A first message whose predecessor was not read may belong to an older turn.
        begun = [index for index in turn_starts(tail) if index > 0]
        if len(begun) >= turns or len(tail) < limit:
            return tail
        limit *= 2


def _branch(
    tx: Tx, session: sessions.Session, shown: Sequence[Segment], point: int, *, reason: BranchReason
) -> Branched:
    """Make a branch that keeps the path up to ``point``, and show it."""
    session_id = SessionId(session.id)
    no = session.last_branch_no + 1
    branches.add_branch(tx, branch_at(shown, point, session_id=session_id, no=no, reason=reason))
    retried = point if reason == "retry" else None
    return _show(tx, session_id, branches.list_branches(tx, session_id), no, retried=retried)


def _show(
    tx: Tx, session_id: SessionId, known: Sequence[Branch], no: int, *, retried: int | None = None
) -> Branched:
    """Show a branch; what was to run on another one is cancelled, but for what answers the message ``retried``."""
    shown = path(known, session_id=session_id, no=no)
    count = branch_paths.count_path(tx, shown)
    branches.activate(tx, session_id=session_id, no=no, message_count=count)
    for item in inbox.list_ready(tx, session_id):
        # A message may be on many branches, but it is to be answered again on the one where the answer was taken back.
        is_elsewhere = item.purpose == "rerun" and item.seq != retried
        if item.seq is not None and (is_elsewhere or not branch_paths.is_on_path(tx, shown, item.seq)):
            inbox.finish(tx, item.id, fate="cancelled", note=TAKEN_BACK)
            feed.add_event(tx, session_id, "inbox", item.id)
            outbox.end_held(tx, session_id, PREVIEW_TAKEN_BACK)
    feed.add_event(tx, session_id, "branch", no)
    return Branched(branch_no=no, message_count=count)


def _run_again(
    tx: Tx, session_id: SessionId, branched: Branched, *, seq: int, person_id: int, rerun: Rerun | None
) -> Branched:
    """Queue a turn on a message that stands in the transcript already."""
    if rerun is None:
        return branched
    inbox_id = inbox.add_item(
        tx,
        session_id=session_id,
        kind="agent",
        purpose="rerun",
        source=rerun.source,
        ref=rerun.ids.token(),
        parts=(),
        person_id=person_id,
        seq=seq,
    )
    feed.add_event(tx, session_id, "inbox", inbox_id)
    return Branched(branch_no=branched.branch_no, message_count=branched.message_count, inbox_id=inbox_id)


def _message_at(tx: Tx, shown: Sequence[Segment], seq: int) -> Message:
    """Return the message of the path with this number, which must be there."""
    owner = owner_of(shown, seq)
    assert owner is not None
    [message] = messages.list_range(
        tx, session_id=owner.session_id, branch_no=owner.branch_no, first_seq=seq, last_seq=seq
    )
    return message
