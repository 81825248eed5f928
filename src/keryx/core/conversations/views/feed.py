"""The feed: the events that a person may see after a position, or the events of one session."""

from keryx.core.conversations.rules.event import START, Event, Position
from keryx.core.conversations.tables import feed, sessions
from keryx.core.conversations.tables.feed import end
from keryx.errors import InvalidValue
from keryx.store.database import ReadTx

__all__ = ["end", "list_after", "list_of_session"]

EVENTS_MAX = 1_000


def list_after(
    tx: ReadTx, *, person_id: int, after: Position = START, limit: int = EVENTS_MAX
) -> list[Event]:
    """Return the events after a position that a person may see, oldest first."""
    return feed.list_after(tx, after=after, person_id=person_id, limit=_checked(limit))


def list_of_session(
    tx: ReadTx, session_id: str, *, person_id: int, after_number: int = 0, limit: int = EVENTS_MAX
) -> list[Event]:
    """Return the events of a session after a number, oldest first and without gaps."""
    sessions.get_visible(tx, session_id, person_id=person_id)
    return feed.list_of_session(tx, session_id=session_id, after_number=after_number, limit=_checked(limit))


def _checked(limit: int) -> int:
    if not 1 <= limit <= EVENTS_MAX:
        raise InvalidValue(f"{limit} events at once: ask for 1 to {EVENTS_MAX}")
    return limit
