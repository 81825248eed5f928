"""Delete sessions for good: one by wish, those whose time in the bin is over, and, into the bin first, old ones.

The only place that deletes what people said. What forks still show of a purged session is copied into them first.
A message of a purged session that its platform delivers again counts as new.
"""

from dataclasses import replace

from keryx.domain.branch import Branch, Segment, path
from keryx.domain.cover import covers_on
from keryx.domain.session import BIN_DAYS, PRUNE_DAYS, SessionId, days_before
from keryx.errors import SessionBusy
from keryx.store.database import Tx
from keryx.store.tables import blobs, branches, covers, feed, keys, purge, sessions
from keryx.transactions.change_session import move_to_bin
from keryx.transactions.idle_session import lock_idle, require_idle, require_owner
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """The session is gone; so many messages were copied into its forks first."""

    session_id: SessionId
    messages: int
    copied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BinEmptied:
    """What was purged, and what has to wait because something of it still runs."""

    purged: tuple[Purged, ...]
    busy: tuple[SessionId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What was moved into the bin, and what has to wait because something of it still runs."""

    binned: tuple[SessionId, ...]
    busy: tuple[SessionId, ...]


def purge_session(tx: Tx, session_id: SessionId, *, person_id: int) -> Purged:
    """Delete a session for good, for its owner; raises ``SessionBusy`` while anything of it runs."""
    session = lock_idle(tx, session_id, person_id=person_id)
    require_owner(tx, session, person_id=person_id)
    return _purge(tx, session)


def empty_bin(tx: Tx, *, days: int = BIN_DAYS, limit: int = 20) -> BinEmptied:
    """Purge up to ``limit`` sessions that have been in the bin for their whole time."""
    purged: list[Purged] = []
    busy: list[SessionId] = []
    for session_id in purge.list_in_bin(tx, before=days_before(tx.now, days), limit=limit):
        try:
            require_idle(tx, session_id)
            purged.append(_purge(tx, sessions.get_session(tx, session_id)))
        except SessionBusy:
            busy.append(session_id)
    return BinEmptied(purged=tuple(purged), busy=tuple(busy))


def prune(
    tx: Tx, *, person_id: int, days: int = PRUNE_DAYS, platform: str | None = None, limit: int = 200
) -> Pruned:
    """Move up to ``limit`` of a person's closed sessions without recent activity into the bin; never a pinned one.

    What came out of them (forks, the sessions after a reset) is judged by its own activity.
    """
    binned: list[SessionId] = []
    busy: list[SessionId] = []
    before = days_before(tx.now, days)
    for session_id in purge.list_prunable(
        tx, owner_id=person_id, before=before, platform=platform, limit=limit
    ):
        try:
            require_idle(tx, session_id)
        except SessionBusy:
            busy.append(session_id)
        else:
            move_to_bin(tx, session_id)
            binned.append(session_id)
    return Pruned(binned=tuple(binned), busy=tuple(busy))


def _purge(tx: Tx, session: sessions.SessionRecord) -> Purged:
    """Purge a session that is locked and has no turn."""
    session_id = SessionId(session.id)
    if purge.has_sending(tx, session_id) or purge.has_process(tx, session_id):
        raise SessionBusy(
            f"A process of session {session_id} runs, or a message of it is being sent. Purge it when that is over."
        )
    copied = _hand_over(tx, session_id)
    members = purge.list_members(tx, session.audience_id)
    blobs.drop_refs(tx, holder=blobs.session_holder(session_id))
    keys.remove_keys(tx, session_id)
    purge.drop_session(tx, session_id)
    for person_id in members:
        feed.add_personal_event(tx, person_id, "session.purged")
    return Purged(session_id=session_id, messages=session.message_total, copied=copied)


def _hand_over(tx: Tx, session_id: SessionId) -> int:
    """Give every fork its own copy of what it shows of the session; return how many messages were copied.

    A fork takes the copies into its first branch, in front of its own messages, so its branches stay as they were.
    Branches that go on from an inherited message then go on from the copy of it.
    """
    children = purge.list_children(tx, session_id)
    known: dict[SessionId, list[Branch]] = {}
    for child in children:
        if child.session_id not in known:
            sessions.lock_session(tx, child.session_id)
            known[child.session_id] = branches.list_branches(tx, child.session_id)
    paths = {fork_id: path(found, session_id=fork_id, no=0) for fork_id, found in known.items()}
    copied = 0
    for child in children:
        if child.no == 0:
            copied += _absorb(tx, session_id, child.session_id, known[child.session_id])
        else:
            heir = _heir(paths[child.session_id], session_id)
            purge.set_parent(
                tx,
                session_id=child.session_id,
                no=child.no,
                parent=(heir, 0),
                parent_seq=child.parent_seq,
            )
            feed.add_event(tx, child.session_id, "branch", child.no)
    return copied


def _heir(shown: list[Segment], session_id: SessionId) -> str:
    """Return the session on this path that takes over the messages of the purged one: the one right after it."""
    last = max(place for place, segment in enumerate(shown) if segment.session_id == session_id)
    return shown[last + 1].session_id


def _absorb(tx: Tx, session_id: SessionId, fork_id: SessionId, known: list[Branch]) -> int:
    """Copy what a fork shows of the session into the fork's first branch; return how many messages that were."""
    shown = path(known, session_id=fork_id, no=0)
    holding = covers_on(branches.list_covers(tx, session_id), known, session_id=fork_id, no=0)
    inherited = [segment for segment in shown if segment.session_id == session_id]
    older = shown[: shown.index(inherited[0])]
    message_ids = [
        message_id
        for segment in inherited
        for message_id in purge.copy_segment(tx, segment, to_session_id=fork_id)
    ]
    purge.set_parent(
        tx,
        session_id=fork_id,
        no=0,
        parent=(older[-1].session_id, older[-1].branch_no) if older else None,
        parent_seq=older[-1].last_seq or 0 if older else 0,
    )
    for cover in holding:
        covers.add_cover(tx, replace(cover, session_id=fork_id, branch_no=0))
    blobs.copy_refs(tx, from_holder=blobs.session_holder(session_id), to_holder=blobs.session_holder(fork_id))
    purge.recount(tx, fork_id)
    for message_id in message_ids:
        feed.add_event(tx, fork_id, "message", message_id)
    feed.add_event(tx, fork_id, "branch", 0)
    return len(message_ids)
