"""Fork a session: open another session that continues from one of its messages."""

from dataclasses import asdict

from keryx.core.conversations.rules.branch import branch_at, path_up_to
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import branch_paths, branches, feed, sessions
from keryx.core.conversations.transactions.open_session import inherited_settings
from keryx.core.people.rules.person import Person
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Tx


def fork_session(
    tx: Tx,
    ids: Ids,
    session_id: SessionId,
    *,
    person: Person,
    at: int | None = None,
    title: str | None = None,
) -> SessionId:
    """Open a session that continues from message ``at`` of the active branch (None: the last), without copying.

    The fork continues the message numbers and keeps the audience, so nobody sees messages that were not visible to
    them before. Raises ``InvalidValue`` for a message that is not on the branch.
    """
    # Lock the parent so that it cannot be purged meanwhile. A running turn does not prevent a fork.
    sessions.lock_session(tx, session_id)
    session = sessions.get_visible(tx, session_id, person_id=person.id)
    shown = branches.list_path(tx, session_id=session_id, branch_no=session.active_branch_no)
    if at is None:
        last = branch_paths.list_tail(tx, shown, limit=1)
        at = last[0].seq if last else 0
    elif at != 0 and not branch_paths.is_on_path(tx, shown, at):
        raise InvalidValue(f"fork at {at}: that is no message shown in session {session_id}")
    fork_id = SessionId(ids.session_id(tx.now))
    columns = asdict(inherited_settings(session)) | {
        "audience_id": session.audience_id,
        "display_name": session.display_name,
        "title": title or session.title or f"Fork of {session_id}",
        "title_by": "person" if title else "text",
        "project_id": session.project_id if session.owner_id == person.id else None,
        "last_seq": at,
        "message_count": branch_paths.count_path(tx, path_up_to(shown, at)),
    }
    sessions.add_session(tx, id=fork_id, source=session.source, owner_id=person.id, **columns)
    branches.add_branch(tx, branch_at(shown, at, session_id=fork_id, no=0, reason="fork"))
    branches.add_link(tx, kind="fork", to_session_id=fork_id, from_session_id=session_id, at_seq=at)
    feed.add_event(tx, fork_id, "session.opened")
    return fork_id
