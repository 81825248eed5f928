"""The messages and sessions that a search matches and shows, and the sessions that filters select."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.branch import Segment
from keryx.core.conversations.rules.message import Message
from keryx.store.codec import to_json
from keryx.store.database import ReadTx, Row


def list_messages(tx: ReadTx, message_ids: Collection[int]) -> dict[int, Message]:
    """Return some messages by id; purged messages are missing."""
    if not message_ids:
        return {}
    found = tx.all(Message, "searched_rows.list_messages", ids=to_json(list(message_ids)))
    return {message.id: message for message in found}


def list_message_ids(tx: ReadTx, *, after_id: int, limit: int) -> list[int]:
    """Return the ids of the messages after one, rising."""
    return tx.values("searched_rows.list_message_ids", after_id=after_id, limit=limit)


def list_near(tx: ReadTx, places: Sequence[tuple[str, int, int]], *, reach: int) -> list[Row]:
    """Return (session, number, role, parts) of the messages up to ``reach`` around (session, branch, number)."""
    if not places or not reach:
        return []
    return tx.rows("searched_rows.list_near", places=to_json(places), reach=reach)


def list_first(tx: ReadTx, segment: Segment, *, first_seq: int, last_seq: int, limit: int) -> list[Message]:
    """Return the oldest messages of a part of a branch's path from ``first_seq`` on, oldest first."""
    return tx.all(
        Message,
        "searched_rows.list_first",
        session_id=segment.session_id,
        branch_no=segment.branch_no,
        first_seq=first_seq,
        last_seq=last_seq,
        limit=limit,
    )


class SessionRow(NamedTuple):
    """The columns of a session that a search needs."""

    id: str
    audience_id: int
    platform: str
    state: str
    title: str | None
    title_by: str | None
    display_name: str | None
    started_at: Micros
    active_branch_no: int
    pinned_at: Micros | None
    archived_at: Micros | None
    deleted_at: Micros | None
    project: str | None
    tag_lines: str | None

    @property
    def tags(self) -> tuple[str, ...]:
        """The session's tags, in order."""
        return () if self.tag_lines is None else tuple(sorted(self.tag_lines.split("\n")))

    @property
    def card_text(self) -> str:
        """The text of the session card. A title taken from a message is left out: the message holds it."""
        title = None if self.title_by == "text" else self.title
        return "\n".join([each for each in (title, self.display_name, *self.tags, self.id) if each])


def list_sessions(tx: ReadTx, session_ids: Collection[str]) -> dict[str, SessionRow]:
    """Return some sessions by id; purged sessions are missing."""
    if not session_ids:
        return {}
    found = tx.all(SessionRow, "searched_rows.list_sessions", ids=to_json(list(session_ids)), line_break="\n")
    return {session.id: session for session in found}


def count_audiences(tx: ReadTx, *, limit: int) -> int:
    """Count all audiences, up to ``limit``."""
    count: int = tx.value("searched_rows.count_audiences", limit=limit)
    return count


def list_tags(tx: ReadTx) -> list[str]:
    """Return all tags."""
    return tx.values("searched_rows.list_tags")


def list_tagged(tx: ReadTx, tags: Collection[str], *, limit: int) -> list[str]:
    """Return sessions with one of ``tags``."""
    return tx.values("searched_rows.list_tagged", tags=to_json(list(tags)), limit=limit)


def list_projects(tx: ReadTx) -> dict[int, str]:
    """Return the names of all projects by id."""
    return dict(tx.rows("searched_rows.list_projects"))


def list_in_projects(tx: ReadTx, project_ids: Collection[int], *, limit: int) -> list[str]:
    """Return sessions of some projects."""
    return tx.values("searched_rows.list_in_projects", ids=to_json(list(project_ids)), limit=limit)


def list_in_state(tx: ReadTx, state: str, *, limit: int) -> list[str]:
    """Return sessions that are ``pinned``, ``archived`` or ``deleted``."""
    return tx.values("searched_rows.list_in_state", state=state, limit=limit)
