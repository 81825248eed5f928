"""Undo, redo, retry, edit, pop and clear: show another branch of a transcript, without changing a message.

A session with a running turn is refused. Afterwards ``message_count`` is the number of messages on the active branch,
and no message waits for a turn that is not on this branch.
"""

from collections.abc import Sequence
from dataclasses import replace

from keryx.core.conversations.rules.branch import (
    Branch,
    BranchReason,
    PathMessage,
    Segment,
    began_at,
    branch_at,
    edit_point,
    path,
    redo_targets,
    retry_point,
    turn_starts,
    undo_point,
)
from keryx.core.conversations.rules.message import Message, NewMessage, Part, TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import branch_paths, branches, feed, sessions
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.conversations.transactions.session_guard import Actor, lock_idle
from keryx.core.deliveries.tables import outbox
from keryx.core.turns.tables import inbox
from keryx.errors import NotFound
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

TAIL_MESSAGES = 64
"""The number of messages that are read to find the beginning of the last turns; doubled until they are found."""
TAKEN_BACK = "the message was taken back"
PREVIEW_TAKEN_BACK = (TextPart(text="(taken back)"),)
"""The final text of a preview whose message was taken back before the answer was complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branched:
    """This branch is the active one now; ``inbox_id`` is the inbox item that waits for a turn on it, if any."""

    branch_no: int
    message_count: int
    inbox_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToUndo:
    """The session has only this many turns; nothing changed."""

    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToRedo:
    """No undo, retry or edit can be reversed; nothing changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToRetry:
    """The session has no user message; nothing changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """The source of the turn that ``retry`` or ``edit`` queues; without a ``Rerun`` they queue none."""

    ids: Ids
    source: Source


def undo(tx: Tx, session_id: SessionId, *, actor: Actor, turns: int = 1) -> Branched | NothingToUndo:
    """Take back the last turns: show a branch that ends before them."""
    session = lock_idle(tx, session_id, actor=actor)
    shown = _active_path(tx, session)
    tail = _tail_with_turns(tx, shown, turns)
    point = undo_point(tail, turns=turns)
    if point is None:
        return NothingToUndo(turns=len(turn_starts(tail)))
    return _branch(tx, session, shown, point, reason="undo")


def redo(tx: Tx, session_id: SessionId, *, actor: Actor) -> Branched | NothingToRedo:
    """Show the branch that was active before the last undo, retry or edit."""
    session = lock_idle(tx, session_id, actor=actor)
    known = branches.list_branches(tx, session_id)
    no = session.active_branch_no
    began = began_at(known, session_id=session_id, no=no)
    for target in redo_targets(known, session_id=session_id, no=no):
        # A branch that an earlier undo made may have no message of its own: skip it.
        last = branch_paths.list_tail(tx, path(known, session_id=session_id, no=target), limit=1)
        if last and last[0].seq > began:
            return _show(tx, session_id, known, target)
    return NothingToRedo()


def switch_branch(tx: Tx, session_id: SessionId, no: int, *, actor: Actor) -> Branched:
    """Show another branch of the session. Raise ``NotFound`` if the branch does not exist."""
    lock_idle(tx, session_id, actor=actor)
    known = branches.list_branches(tx, session_id)
    if not any((branch.session_id, branch.no) == (session_id, no) for branch in known):
        raise NotFound(f"Session {session_id} has no branch {no}.")
    return _show(tx, session_id, known, no)


def retry(
    tx: Tx, session_id: SessionId, *, actor: Actor, rerun: Rerun | None = None
) -> Branched | NothingToRetry:
    """Take back the last answer and, with ``rerun``, queue another turn for the same messages."""
    session = lock_idle(tx, session_id, actor=actor)
    shown = _active_path(tx, session)
    point = retry_point(_tail_with_turns(tx, shown, 1))
    if point is None:
        return NothingToRetry()
    branched = _branch(tx, session, shown, point, reason="retry")
    waiting = [item.id for item in inbox.list_ready(tx, session_id) if item.seq == point]
    if waiting:
        # The turn has not begun yet, or was lost: it runs on the new branch, once.
        return replace(branched, inbox_id=waiting[0])
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
    """Replace a message of the active branch: show a branch that ends before it, and append the new parts.

    With ``rerun``, queue a turn for a replaced user message. Raise ``InvalidValue`` for a message of another branch.
    """
    session = lock_idle(tx, session_id, actor=actor)
    shown = _active_path(tx, session)
    around = branch_paths.list_tail(tx, shown, limit=2, last_seq=seq)
    point = edit_point(around, seq=seq)
    old = branch_paths.find_message(tx, shown, seq)
    assert old is not None
    branched = _branch(tx, session, shown, point, reason="edit")
    new = NewMessage(role=old.role, parts=parts, author=old.author, author_id=old.author_id)
    appended = append_message(tx, session_id, new, person_id=actor.person_id)
    branched = replace(branched, message_count=branched.message_count + 1)
    wanted = rerun if old.role == "user" else None
    return _run_again(tx, session_id, branched, seq=appended.seq, person_id=actor.person_id, rerun=wanted)


def pop_message(tx: Tx, session_id: SessionId, *, actor: Actor) -> Message | None:
    """Take back the last message and return it, or None if the transcript is empty."""
    session = lock_idle(tx, session_id, actor=actor)
    shown = _active_path(tx, session)
    tail = branch_paths.list_tail(tx, shown, limit=2)
    if not tail:
        return None
    last = branch_paths.find_message(tx, shown, tail[-1].seq)
    _branch(tx, session, shown, tail[0].seq if len(tail) == 2 else 0, reason="undo")
    return last


def clear_messages(tx: Tx, session_id: SessionId, *, actor: Actor) -> None:
    """Show an empty transcript; the messages stay on their branch."""
    session = lock_idle(tx, session_id, actor=actor)
    if session.message_count:
        _branch(tx, session, _active_path(tx, session), 0, reason="undo")


def _active_path(tx: Tx, session: sessions.Session) -> list[Segment]:
    return branches.list_path(tx, session_id=session.id, branch_no=session.active_branch_no)


def _tail_with_turns(tx: Tx, shown: Sequence[Segment], turns: int) -> list[PathMessage]:
    """Return enough of the path's end to contain the beginnings of its last ``turns`` turns, or the whole path."""
    limit = TAIL_MESSAGES
    while True:
        tail = branch_paths.list_tail(tx, shown, limit=limit)
        # The first message may belong to an older turn: the message before it was not read.
        begun = [index for index in turn_starts(tail) if index > 0]
        if len(begun) >= turns or len(tail) < limit:
            return tail
        limit *= 2


def _branch(
    tx: Tx, session: sessions.Session, shown: Sequence[Segment], point: int, *, reason: BranchReason
) -> Branched:
    """Make a branch that keeps the path up to ``point``, and show it."""
    no = session.last_branch_no + 1
    branches.add_branch(tx, branch_at(shown, point, session_id=session.id, no=no, reason=reason))
    retried = point if reason == "retry" else None
    return _show(tx, session.id, branches.list_branches(tx, session.id), no, retried=retried)


def _show(
    tx: Tx, session_id: SessionId, known: Sequence[Branch], no: int, *, retried: int | None = None
) -> Branched:
    """Show a branch and cancel the inbox items of messages that are not on it.

    A waiting rerun is cancelled too, unless it answers the message ``retried``: the answer of any other rerun belongs
    to the branch on which that answer was taken back.
    """
    shown = path(known, session_id=session_id, no=no)
    count = branch_paths.count_path(tx, shown)
    branches.activate(tx, session_id=session_id, no=no, message_count=count)
    for item in inbox.list_ready(tx, session_id):
        is_elsewhere = item.purpose == "rerun" and item.seq != retried
        if item.seq is not None and (is_elsewhere or not branch_paths.is_on_path(tx, shown, item.seq)):
            inbox.finish(tx, item.id, fate="cancelled", note=TAKEN_BACK)
            feed.add_event(tx, session_id, "inbox", item.id)
            outbox.end_previews(tx, session_id, PREVIEW_TAKEN_BACK)
    feed.add_event(tx, session_id, "branch", no)
    return Branched(branch_no=no, message_count=count)


def _run_again(
    tx: Tx, session_id: SessionId, branched: Branched, *, seq: int, person_id: int, rerun: Rerun | None
) -> Branched:
    """Queue a turn for a message that is already in the transcript."""
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
    return replace(branched, inbox_id=inbox_id)
