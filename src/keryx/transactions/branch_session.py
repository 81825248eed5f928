"""Undo, redo, retry, edit, switch, fork and compress: other views of a transcript, of which nothing is changed.

Each makes a branch or a cover and can be taken back. None is done under a running turn. Afterwards
``message_count`` is the length of the path that is shown, and nothing waits to be run that is not on it.
"""

from collections.abc import Sequence

from keryx.domain.branch import (
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
from keryx.domain.message import Message, NewMessage, Part
from keryx.domain.person import Person
from keryx.domain.session import SessionId
from keryx.domain.source import Source
from keryx.errors import InvalidValue, NotFound
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.store.tables import branches, feed, inbox, messages, paths, sessions
from keryx.transactions.append_message import append_message
from keryx.transactions.idle_session import lock_idle
from keryx.transactions.preview import end_previews
from keryx.values import dataclass

TAIL = 64
"""How many messages are read to find where the last turns began; doubled until they are found."""
TAKEN_BACK = "the message was taken back"
PREVIEW_TAKEN_BACK = "(taken back)"
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


def undo(tx: Tx, session_id: SessionId, *, person_id: int, turns: int = 1) -> Branched | NothingToUndo:
    """Take back the last turns: show a branch that ends before them."""
    session = lock_idle(tx, session_id, person_id=person_id)
    shown = _shown(tx, session)
    tail = _tail_with_turns(tx, shown, turns)
    point = undo_point(tail, turns=turns)
    if point is None:
        return NothingToUndo(turns=len(turn_starts(tail)))
    return _branch(tx, session, shown, point, reason="undo")


def redo(tx: Tx, session_id: SessionId, *, person_id: int) -> Branched | NothingToRedo:
    """Go back to what was shown before the last undo, retry or edit."""
    session = lock_idle(tx, session_id, person_id=person_id)
    known = branches.list_branches(tx, session_id)
    no = session.active_branch_no
    began = began_at(known, session_id=session_id, no=no)
    for target in redo_targets(known, session_id=session_id, no=no):
        # What an earlier undo left shows nothing that is not shown here.
        last = paths.list_tail(tx, path(known, session_id=session_id, no=target), limit=1)
        if last and last[0].seq > began:
            return _show(tx, session_id, known, target)
    return NothingToRedo()


def switch_branch(tx: Tx, session_id: SessionId, no: int, *, person_id: int) -> Branched:
    """Show another branch of the session; raises ``NotFound`` for one that is not there."""
    lock_idle(tx, session_id, person_id=person_id)
    known = branches.list_branches(tx, session_id)
    if not any((branch.session_id, branch.no) == (session_id, no) for branch in known):
        raise NotFound(f"Session {session_id} has no branch {no}.")
    return _show(tx, session_id, known, no)


def retry(
    tx: Tx, session_id: SessionId, *, person_id: int, rerun: Rerun | None = None
) -> Branched | NothingToRetry:
    """Take back the last answer and, with ``rerun``, have the same messages answered again."""
    session = lock_idle(tx, session_id, person_id=person_id)
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
    return _run_again(tx, session_id, branched, seq=point, person_id=person_id, rerun=rerun)


def edit(
    tx: Tx,
    session_id: SessionId,
    seq: int,
    parts: tuple[Part, ...],
    *,
    person_id: int,
    rerun: Rerun | None = None,
) -> Branched:
    """Say something else at a message that is shown: a branch that ends before it, then the new text.

    With ``rerun``, a changed user message is answered anew. Raises ``InvalidValue`` for a message not on the path.
    """
    session = lock_idle(tx, session_id, person_id=person_id)
    shown = _shown(tx, session)
    around = paths.list_tail(tx, shown, limit=2, last_seq=seq)
    point = edit_point(around, seq=seq)
    old = _message_at(tx, shown, seq)
    branched = _branch(tx, session, shown, point, reason="edit")
    new = NewMessage(role=old.role, parts=parts, author=old.author, author_id=old.author_id)
    appended = append_message(tx, session_id, new, person_id=person_id)
    branched = Branched(branch_no=branched.branch_no, message_count=branched.message_count + 1)
    wanted = rerun if old.role == "user" else None
    return _run_again(tx, session_id, branched, seq=appended.seq, person_id=person_id, rerun=wanted)


def fork(
    tx: Tx,
    ids: Ids,
    session_id: SessionId,
    *,
    person: Person,
    at: int | None = None,
    title: str | None = None,
) -> SessionId:
    """Open a session that goes on from message ``at`` of what another one shows (None: its last), without copying.

    Its own messages continue the numbers of the other. It has the same audience, so nobody hears what they had not
    heard. Raises ``InvalidValue`` for a message that is not on the path.
    """
    # The session forked from is locked, so that it cannot be purged meanwhile; a running turn is not in the way.
    sessions.lock_session(tx, session_id)
    session = sessions.get_visible(tx, session_id, person_id=person.id)
    shown = _shown(tx, session)
    if at is None:
        last = paths.list_tail(tx, shown, limit=1)
        at = last[0].seq if last else 0
    elif at != 0 and not paths.is_on_path(tx, shown, at):
        raise InvalidValue(f"fork at {at}: that is no message shown in session {session_id}")
    fork_id = SessionId(ids.session_id(tx.now))
    first = branch_at(shown, at, session_id=fork_id, no=0, reason="fork")
    inherited = _up_to(shown, at)
    sessions.add_session(
        tx,
        id=fork_id,
        source=session.source,
        owner_id=person.id,
        audience_id=session.audience_id,
        profile=session.profile,
        display_name=session.display_name,
        title=title or session.title or f"Fork of {session_id}",
        title_by="person" if title else "text",
        project_id=session.project_id if session.owner_id == person.id else None,
        workspace=session.workspace,
        model=session.model,
        model_settings=session.model_settings,
        personality=session.personality,
        last_seq=at,
        message_count=paths.count_path(tx, inherited),
    )
    branches.add_branch(tx, first)
    branches.add_link(tx, kind="fork", to_session_id=fork_id, from_session_id=session_id, at_seq=at)
    feed.add_event(tx, fork_id, "session.opened")
    return fork_id


def _shown(tx: Tx, session: sessions.SessionRecord) -> list[Segment]:
    return branches.list_path(tx, session_id=session.id, branch_no=session.active_branch_no)


def _tail_with_turns(tx: Tx, shown: Sequence[Segment], turns: int) -> list[PathMessage]:
    """Return as much of the path's end as surely holds the beginnings of its last ``turns`` turns, or all of it."""
    limit = TAIL
    while True:
        tail = paths.list_tail(tx, shown, limit=limit)
        # A first message whose predecessor was not read may belong to an older turn.
        begun = [index for index in turn_starts(tail) if index > 0]
        if len(begun) >= turns or len(tail) < limit:
            return tail
        limit *= 2


def _branch(
    tx: Tx, session: sessions.SessionRecord, shown: Sequence[Segment], point: int, *, reason: BranchReason
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
    count = paths.count_path(tx, shown)
    branches.activate(tx, session_id=session_id, no=no, message_count=count)
    for item in inbox.list_ready(tx, session_id):
        # A message may be on many branches, but it is to be answered again on the one where the answer was taken back.
        is_elsewhere = item.is_rerun and item.seq != retried
        if item.seq is not None and (is_elsewhere or not paths.is_on_path(tx, shown, item.seq)):
            inbox.finish(tx, item.id, fate="cancelled", note=TAKEN_BACK)
            feed.add_event(tx, session_id, "inbox", item.id)
            end_previews(tx, session_id, PREVIEW_TAKEN_BACK)
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


def _up_to(shown: Sequence[Segment], seq: int) -> list[Segment]:
    """Return the part of a path that ends with message ``seq``."""
    return [
        Segment(
            session_id=segment.session_id,
            branch_no=segment.branch_no,
            first_seq=segment.first_seq,
            last_seq=seq if segment.last_seq is None else min(segment.last_seq, seq),
        )
        for segment in shown
        if segment.first_seq <= seq
    ]
