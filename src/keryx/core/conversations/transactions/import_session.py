"""Import an exported session: all of it or nothing.

The session belongs to the person who imports it, and only this person is in its audience. A file that names a group
as its source admits nobody to the group's audience.
"""

from dataclasses import replace

from keryx.core.context.tables import covers
from keryx.core.conversations.rules.archive import Archive
from keryx.core.conversations.rules.branch import path
from keryx.core.conversations.rules.session import SessionId, parse_session_id
from keryx.core.conversations.tables import branch_paths, branches, feed, imported, sessions, tags
from keryx.core.conversations.transactions.manage_project import ensure_project
from keryx.core.people.rules.access import AudienceKey
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.core.turns.tables import turns
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Tx


def import_session(tx: Tx, ids: Ids, archive: Archive, *, owner: Person) -> SessionId:
    """Store a session and return its id: the original id if that is free, else a new one."""
    session_id = _free_id(tx, ids, archive.session.id)
    known = archive.known_branches(session_id)
    project = archive.session.project
    imported.add_session(
        tx,
        replace(archive.session, id=session_id),
        owner_id=owner.id,
        audience_id=people.ensure_member(tx, AudienceKey(f"person:{owner.id}"), person_id=owner.id),
        project_id=None if project is None else ensure_project(tx, project, person_id=owner.id),
        last_branch_no=max(branch.no for branch in known),
    )
    for branch in archive.branches:
        branches.add_branch(tx, branch.as_branch(session_id), created_at=branch.created_at)
    for cover in archive.covers:
        covers.add_imported(tx, session_id, cover)
    for tag in archive.tags:
        tags.add_tag(tx, session_id, tag.tag)
    feed.add_event(tx, session_id, "session.opened")
    turn_ids = {turn.no: turns.add_imported(tx, session_id, turn) for turn in archive.turns}
    imported.add_messages(tx, session_id, archive.messages, turn_ids=turn_ids)
    for link in archive.links:
        imported.add_link(tx, session_id, link)
    shown = path(known, session_id=session_id, no=archive.session.active_branch_no)
    imported.set_counters(
        tx,
        session_id,
        last_seq=max([message.seq for message in archive.messages] + [branch.parent_seq for branch in known]),
        message_count=branch_paths.count_path(tx, shown),
    )
    return session_id


def _free_id(tx: Tx, ids: Ids, wanted: str) -> SessionId:
    try:
        session_id = parse_session_id(wanted)
    except InvalidValue:
        return SessionId(ids.session_id(tx.now))
    return session_id if sessions.find_session(tx, session_id) is None else SessionId(ids.session_id(tx.now))
