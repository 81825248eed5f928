"""The feed: every transaction's facts, in streams without gaps."""

from keryx.core.conversations.rules.event import START, Event, EventKind, Position
from keryx.errors import NotFound
from keryx.store.database import ReadTx, Row, Tx


def add_event(tx: Tx, session_id: str, kind: EventKind, subject: int | None = None) -> int:
    """Record a fact about a session and return its number in the session's stream."""
    row = tx.row("feed.next_session_no", session_id=session_id)
    if row is None:
        raise NotFound(f"There is no session {session_id}.")
    number: int = row[0]
    tx.run("feed.add", session_id=session_id, number=number, kind=kind, subject=subject)
    return number


def add_numbered(tx: Tx, session_id: str, number: int, kind: EventKind, *, subject: int | None) -> None:
    """Record a fact under a number that was taken together with another change of the session row."""
    tx.run("feed.add", session_id=session_id, number=number, kind=kind, subject=subject)


def add_personal_event(tx: Tx, person_id: int, kind: EventKind, subject: int | None = None) -> int:
    """Record a fact about no session in a person's own stream and return its number there."""
    row = tx.row("people.next_feed_no", person_id=person_id)
    if row is None:
        raise NotFound(f"There is no person {person_id}.")
    number: int = row[0]
    tx.run("feed.add_personal", person_id=person_id, number=number, kind=kind, subject=subject)
    return number


def list_after(tx: ReadTx, *, after: Position, person_id: int, limit: int) -> list[Event]:
    """Return what a person may see after a position, oldest first; never skips one that commits late."""
    rows = tx.rows(
        "feed.list_after", after_xid=after.xid, after_id=after.id, person_id=person_id, limit=limit
    )
    return [_event(row) for row in rows]


def list_of_session(tx: ReadTx, *, session_id: str, after_number: int, limit: int) -> list[Event]:
    """Return one session's facts after a number, oldest first."""
    rows = tx.rows("feed.list_of_session", session_id=session_id, after_number=after_number, limit=limit)
    return [_event(row) for row in rows]


def end(tx: ReadTx) -> Position:
    """Return the newest position a reader may stand at."""
    return tx.one(Position, "feed.end") or START


def _event(row: Row) -> Event:
    xid, row_id, session_id, person_id, number, kind, subject, at = row
    return Event(
        position=Position(xid, row_id),
        session_id=session_id,
        person_id=person_id,
        number=number,
        kind=kind,
        subject=subject,
        at=at,
    )
