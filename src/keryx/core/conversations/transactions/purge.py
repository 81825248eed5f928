"""Delete the conversation of a session for good.

Only this module deletes messages of people. ``hand_over`` must first copy the messages that forks still show.
"""

from dataclasses import replace

from keryx.core.context.rules.cover import covers_on
from keryx.core.context.tables import covers
from keryx.core.conversations.rules.branch import Branch, Segment, path
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import branches, feed, session_keys, sessions
from keryx.core.conversations.tables import purge as rows
from keryx.core.media import tables as blobs
from keryx.core.people.tables import people
from keryx.store.database import Tx


def purge(tx: Tx, session_id: str) -> None:
    """Delete a session with its messages, branches, keys, tags and events."""
    session_keys.remove_keys(tx, session_id)
    rows.drop_session(tx, session_id)


def add_purge_events(tx: Tx, audience_id: int) -> None:
    """Add the event of the purge to the stream of each member of the audience."""
    for person_id in people.list_members(tx, audience_id):
        feed.add_personal_event(tx, person_id, "session.purged")


def hand_over(tx: Tx, session_id: SessionId) -> int:
    """Copy the messages that forks show of a session into the forks; return the number of copied messages.

    The copies become part of the fork's first branch, before its own messages. A branch that continues from an
    inherited message then continues from the copy of this message.
    """
    children = rows.list_children(tx, session_id)
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
            rows.set_parent(
                tx,
                session_id=child.session_id,
                no=child.no,
                parent=(heir, 0),
                parent_seq=child.parent_seq,
            )
            feed.add_event(tx, child.session_id, "branch", child.no)
    return copied


def _heir(shown: list[Segment], session_id: SessionId) -> str:
    """Return the session on this path that gets the copies: the one after the purged session."""
    last = max(place for place, segment in enumerate(shown) if segment.session_id == session_id)
    return shown[last + 1].session_id


def _absorb(tx: Tx, session_id: SessionId, fork_id: SessionId, known: list[Branch]) -> int:
    """Copy the inherited messages and their summaries into a fork; return the number of messages."""
    shown = path(known, session_id=fork_id, no=0)
    applying = covers_on(covers.list_covers(tx, session_id), known, session_id=fork_id, no=0)
    inherited = [segment for segment in shown if segment.session_id == session_id]
    older = shown[: shown.index(inherited[0])]
    message_ids = [
        message_id
        for segment in inherited
        for message_id in rows.copy_segment(tx, segment, to_session_id=fork_id)
    ]
    rows.set_parent(
        tx,
        session_id=fork_id,
        no=0,
        parent=(older[-1].session_id, older[-1].branch_no) if older else None,
        parent_seq=older[-1].last_seq if older else 0,
    )
    for cover in applying:
        covers.add_cover(tx, replace(cover, session_id=fork_id, branch_no=0))
    blobs.copy_refs(tx, from_holder=blobs.session_holder(session_id), to_holder=blobs.session_holder(fork_id))
    sessions.recount(tx, fork_id)
    for message_id in message_ids:
        feed.add_event(tx, fork_id, "message", message_id)
    feed.add_event(tx, fork_id, "branch", 0)
    return len(message_ids)
