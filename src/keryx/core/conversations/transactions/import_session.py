"""Take in a session that was exported, here or elsewhere: all of it or nothing.

It belongs to whoever takes it in, and only they hear of it: a file that says it came from a group lets nobody
into that group's audience.
"""

from dataclasses import replace

from keryx.core.context.tables import covers
from keryx.core.conversations.rules.archive import Archive
from keryx.core.conversations.rules.branch import Branch, Segment, path
from keryx.core.conversations.rules.session import SessionId, parse_session_id
from keryx.core.conversations.tables import branch_paths, feed, imported, projects, sessions, tags
from keryx.core.people.rules.access import AudienceKey
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.core.turns.tables import turns
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Tx


def import_session(tx: Tx, ids: Ids, archive: Archive, *, owner: Person) -> SessionId:
    """Store a session and return its id: its own where that is free, else a new one."""
    session_id = _free_id(tx, ids, archive.session.id)
    known = archive.known_branches()
    imported.add_session(
        tx,
        replace(archive.session, id=session_id),
        owner_id=owner.id,
        audience_id=_own_audience(tx, owner),
        project_id=_project(tx, archive.session.project, owner),
        last_branch_no=max(branch.no for branch in known),
    )
    for branch in archive.branches:
        imported.add_branch(tx, session_id, branch)
    for cover in archive.covers:
        covers.add_imported(tx, session_id, cover)
    for tag in archive.tags:
        tags.add_tag(tx, session_id, tag.tag)
    feed.add_event(tx, session_id, "session.opened")
    turn_ids = {turn.no: turns.add_imported(tx, session_id, turn) for turn in archive.turns}
    imported.add_messages(tx, session_id, archive.messages, turn_ids=turn_ids)
    for link in archive.links:
        imported.add_link(tx, session_id, link)
    imported.set_counters(
        tx,
        session_id,
        last_seq=max([message.seq for message in archive.messages] + [branch.parent_seq for branch in known]),
        message_count=branch_paths.count_path(tx, _shown(session_id, archive, known)),
    )
    return session_id


def _free_id(tx: Tx, ids: Ids, wanted: str) -> SessionId:
    try:
        session_id = parse_session_id(wanted)
    except InvalidValue:
        return SessionId(ids.session_id(tx.now))
    return session_id if sessions.find_session(tx, session_id) is None else SessionId(ids.session_id(tx.now))


def _own_audience(tx: Tx, owner: Person) -> int:
    audience_id = people.ensure_audience(tx, AudienceKey(f"person:{owner.id}"))
    people.join_audience(tx, person_id=owner.id, audience_id=audience_id)
    return audience_id


def _project(tx: Tx, name: str | None, owner: Person) -> int | None:
    if name is None:
        return None
    project = projects.find_by_name(tx, owner_id=owner.id, name=name)
    return projects.add_project(tx, owner_id=owner.id, name=name) if project is None else project.id


def _shown(session_id: str, archive: Archive, known: list[Branch]) -> list[Segment]:
    """Return the path that is shown, as the rows of the new id have it."""
    return [
        Segment(
            session_id=session_id,
            branch_no=segment.branch_no,
            first_seq=segment.first_seq,
            last_seq=segment.last_seq,
        )
        for segment in path(known, session_id=archive.session.id, no=archive.session.active_branch_no)
    ]
