"""Compress: a summary that covers a range of messages when a model reads them, and its removal.

People and search still see the original messages. A cover that is not smaller than its messages is refused.
"""

from keryx.core.context.rules.cover import Cover, CoverRefusal, cover_refused, covers_on
from keryx.core.context.rules.cover import Summary as Summary
from keryx.core.context.tables import covers
from keryx.core.context.tables.memories import Origin
from keryx.core.context.transactions.manage_memory import remember
from keryx.core.conversations.rules.branch import Branch, path
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import branch_paths, branches, feed, sessions
from keryx.core.conversations.transactions.session_guard import Actor, lock_idle, require_turn_lease
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.transactions.flush_session import give_way
from keryx.store.database import ReadTx, Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """The cover was added under this number."""

    no: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverRefused:
    """The summary was refused for this reason; nothing changed."""

    reason: CoverRefusal


def cover(
    tx: Tx, session_id: SessionId, summary: Summary, *, person_id: int, holder: str | None = None
) -> Covered | CoverRefused:
    """Cover a range of the session's active branch with a summary.

    ``holder`` holds the session's lease, if a turn made the summary.
    """
    session = lock_idle(tx, session_id, actor=Actor(person_id=person_id, give_way=give_way, holder=holder))
    known = branches.list_branches(tx, session_id)
    no = session.active_branch_no
    shown = path(known, session_id=session_id, no=no)
    ends = {summary.first_seq, summary.last_seq}
    refusal = cover_refused(
        [seq for seq in ends if branch_paths.is_on_path(tx, shown, seq)],
        covers_on(_list_covers(tx, known), known, session_id=session_id, no=no),
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        tokens=(summary.tokens_before, summary.tokens_after),
    )
    if refusal is not None:
        return CoverRefused(reason=refusal)
    cover = Cover(
        session_id=session_id,
        no=0,
        branch_no=no,
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        summary=summary.text,
        focus=summary.focus,
        tokens_before=summary.tokens_before,
        tokens_after=summary.tokens_after,
    )
    number = covers.add_cover(tx, cover, summary.cost)
    feed.add_event(tx, session_id, "cover", number)
    return Covered(no=number)


def cover_held(tx: Tx, held: TurnLease, summary: Summary, *, person_id: int) -> Covered | CoverRefused:
    """Cover a range with the summary that a running turn made of its own session, and store the summary's notes.

    Raise ``LeaseLost`` for a late holder.
    """
    require_turn_lease(tx, held)
    outcome = cover(tx, held.session_id, summary, person_id=person_id, holder=held.lease.holder)
    if isinstance(outcome, Covered) and summary.notes:
        origin = Origin(
            author_id=_author(tx, held.session_id, summary, person_id=person_id),
            session_id=held.session_id,
            seq=summary.last_seq,
        )
        for note in summary.notes:
            remember(tx, held.session_id, note, person_id=person_id, origin=origin)
    return outcome


def _author(tx: ReadTx, session_id: SessionId, summary: Summary, *, person_id: int) -> int | None:
    """Return the author of the summarised messages; None if there are several, because a note does not say which."""
    active = sessions.get_session(tx, session_id).active_branch_no
    shown = branches.list_path(tx, session_id=session_id, branch_no=active)
    spoke = branch_paths.list_authors(tx, shown, first_seq=summary.first_seq, last_seq=summary.last_seq)
    authors = spoke or {person_id}
    return None if len(authors) > 1 else next(iter(authors))


def uncover_last(tx: Tx, session_id: SessionId, *, person_id: int) -> Cover | None:
    """Drop the newest of the session's own covers that apply now, and return it; None if there is none."""
    session = sessions.lock_session(tx, session_id)
    sessions.get_visible(tx, session_id, person_id=person_id)
    active = active_covers(tx, session_id, session.active_branch_no)
    own = [each for each in active if each.session_id == session_id]
    last = max(own, key=lambda each: each.no, default=None)
    if last is not None:
        uncover(tx, session_id, last.no, person_id=person_id)
    return last


def uncover(tx: Tx, session_id: SessionId, no: int, *, person_id: int) -> bool:
    """Drop a cover, so that a model reads the messages again. Return whether the cover applied until now."""
    sessions.lock_session(tx, session_id)
    sessions.get_visible(tx, session_id, person_id=person_id)
    dropped = covers.drop_cover(tx, session_id=session_id, no=no)
    if dropped:
        feed.add_event(tx, session_id, "cover", no)
    return dropped


def active_covers(tx: ReadTx, session_id: str, no: int) -> list[Cover]:
    """Return the covers that apply to a branch, oldest range first."""
    known = branches.list_branches(tx, session_id)
    return covers_on(_list_covers(tx, known), known, session_id=session_id, no=no)


def _list_covers(tx: ReadTx, known: list[Branch]) -> list[Cover]:
    """Return the covers of a session and of the sessions it was forked from: these apply to inherited messages."""
    session_ids = dict.fromkeys(branch.session_id for branch in known)
    return [cover for session_id in session_ids for cover in covers.list_covers(tx, session_id)]
