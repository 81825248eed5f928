"""Append a message: its row, the session's counters and the event in the feed.

The cost does not depend on the length of the session.
"""

from keryx.core.conversations.rules.message import NewMessage, preview_of, tool_call_count, usage_of
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.title import title_from
from keryx.core.conversations.tables import feed, messages, sessions
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.tables import leases
from keryx.errors import SessionBusy
from keryx.store.codec import clean_text
from keryx.store.database import Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The number and the row id of an appended message."""

    seq: int
    message_id: int


def append_message(tx: Tx, session_id: SessionId, message: NewMessage, *, person_id: int) -> Appended:
    """Append on behalf of a person. Raise ``SessionBusy`` while a turn runs in the session."""
    place = sessions.take_place(tx, session_id, _counts(tx, message), person_id=person_id)
    if place is None:
        sessions.get_visible(tx, session_id, person_id=person_id)
        raise SessionBusy(
            f"A turn is running in session {session_id}. Wait until it is done, or send the message to the inbox."
        )
    return _store(tx, session_id, place, message, turn_id=None)


def append_held(tx: Tx, held: TurnLease, message: NewMessage, *, is_activity: bool = True) -> Appended:
    """Append on behalf of a turn. Raise ``LeaseLost`` if its lease is not valid."""
    counts = _counts(tx, message, is_activity=is_activity)
    place = sessions.take_place(tx, held.session_id, counts, lease=held.lease)
    if place is None:
        raise leases.lost(held.lease)
    return _store(tx, held.session_id, place, message, turn_id=held.turn_id)


def _store(
    tx: Tx, session_id: str, place: sessions.MessagePlace, message: NewMessage, *, turn_id: int | None
) -> Appended:
    message_id = messages.add_message(
        tx, session_id=session_id, place=place, message=message, turn_id=turn_id
    )
    feed.add_numbered(tx, session_id, place.feed_number, "message", subject=message_id)
    return Appended(seq=place.seq, message_id=message_id)


def _counts(tx: Tx, message: NewMessage, *, is_activity: bool = True) -> dict[str, object]:
    """Return the changes of the session's row. Messages of tools and the system are no activity."""
    speaks = message.role in ("user", "assistant")
    created_at = tx.now if message.created_at is None else message.created_at
    return {
        **usage_of(message),
        "tool_call_count": tool_call_count(message.parts),
        "active_at": created_at if speaks and is_activity else 0,
        "preview": (clean_text(preview_of(message.parts)) or None) if speaks else None,
        "title": clean_text(title_from(message.parts)) if message.role == "user" else None,
    }
