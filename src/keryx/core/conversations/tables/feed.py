"""The feed: the events of all transactions, in streams without gaps."""

from keryx.core.conversations.rules.event import START, Event, EventKind, Position
from keryx.errors import NotFound
from keryx.store.database import ReadTx, Row, Tx


def add_event(tx: Tx, session_id: str, kind: EventKind, subject: int | None = None) -> int:
    """Add an event of a session and return its number in the session's stream."""
    number: int | None = tx.value("feed.next_session_no", session_id=session_id)
    if number is None:
        raise NotFound(f"There is no session {session_id}.")
    tx.run("feed.add", session_id=session_id, number=number, kind=kind, subject=subject)
    return number


def add_numbered(tx: Tx, session_id: str, number: int, kind: EventKind, *, subject: int | None) -> None:
    """Add an event under a number that another update of the session's row has reserved."""
    tx.run("feed.add", session_id=session_id, number=number, kind=kind, subject=subject)


def add_personal_event(tx: Tx, person_id: int, kind: EventKind, subject: int | None = None) -> int:
    """Add an event to a person's stream and return its number there."""
    number: int | None = tx.value("people.next_feed_no", person_id=person_id)
    if number is None:
        raise NotFound(f"There is no person {person_id}.")
    tx.run("feed.add_personal", person_id=person_id, number=number, kind=kind, subject=subject)
    return number


def list_after(tx: ReadTx, *, after: Position, person_id: int, limit: int) -> list[Event]:
    """Return the events after a position that a person may see, oldest first; skip none that commits late."""
    rows = tx.rows(
        "feed.list_after", after_xid=after.xid, after_id=after.id, person_id=person_id, limit=limit
    )
    return [_event(row) for row in rows]


def list_of_session(tx: ReadTx, *, session_id: str, after_number: int, limit: int) -> list[Event]:
    """Return the events of a session after a number, oldest first."""
    rows = tx.rows("feed.list_of_session", session_id=session_id, after_number=after_number, limit=limit)
    return list(map(_event, rows))


def end(tx: ReadTx) -> Position:
    """Return the position of the newest event, as far as older events can no longer appear."""
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
