"""The rows of an imported session, with their original times and numbers."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from keryx.core.conversations.rules.archive import LinkLine, MessageLine, SessionLine
from keryx.core.conversations.rules.message import decode_parts, tool_call_count
from keryx.core.conversations.tables import sessions
from keryx.store.codec import clean_columns, clean_text
from keryx.store.database import Tx


def add_session(
    tx: Tx,
    session: SessionLine,
    *,
    owner_id: int,
    audience_id: int,
    project_id: int | None,
    last_branch_no: int,
) -> None:
    """Add an imported session without its counters. Raise ``RaceLost`` if its id is in use."""
    columns = asdict(session) | {
        "state": "open" if session.closed_at is None else "closed",
        "project_id": project_id,
        "last_branch_no": last_branch_no,
        "source": session.source,
    }
    del columns["project"]
    sessions.add_session(tx, owner_id=owner_id, audience_id=audience_id, **clean_columns(columns))


def add_link(tx: Tx, session_id: str, line: LinkLine) -> None:
    """Add a link to the origin of the session."""
    tx.run("imported.add_link", session_id=session_id, **clean_columns(asdict(line)))


def add_messages(tx: Tx, session_id: str, lines: Sequence[MessageLine], *, turn_ids: dict[int, int]) -> None:
    """Add all messages of a session, and an event for each."""
    tx.run_many("messages.add", [_columns(session_id, line, turn_ids) for line in lines])
    tx.run("imported.add_events", session_id=session_id)


def set_counters(tx: Tx, session_id: str, *, last_seq: int, message_count: int) -> None:
    """Set the counters of an imported session."""
    tx.run("imported.set_counters", session_id=session_id, last_seq=last_seq, message_count=message_count)
    sessions.recount(tx, session_id)


def _columns(session_id: str, line: MessageLine, turn_ids: dict[int, int]) -> dict[str, Any]:
    columns = asdict(line)
    turn, body = columns.pop("turn"), columns.pop("body")
    return clean_columns(columns) | {
        "session_id": session_id,
        "parts": clean_text(body),
        "author_id": None,
        "turn_id": None if turn is None else turn_ids[turn],
        "tool_call_count": tool_call_count(decode_parts(body)),
    }
