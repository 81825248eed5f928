"""A session's id and states, and when it is listed, purged or pruned.

The id never changes, whatever happens to the transcript. Nothing here deletes: the rules only say what is due.
"""

import re
from datetime import UTC, datetime
from typing import Literal, NewType

from keryx.clock import DAY, SECOND, Micros
from keryx.errors import InvalidValue

SessionId = NewType("SessionId", str)
CloseReason = NewType("CloseReason", str)
SessionState = Literal["open", "closed"]

CLOSE_REASONS = frozenset({"reset", "new", "switch", "done", "deleted", "expired", "imported"})
"""The reasons Keryx itself gives; a program using the library may give a word of its own."""

EMPTY_LISTED: Micros = 60 * SECOND
BIN_DAYS = 30
PRUNE_DAYS = 90

_SESSION_ID = re.compile(r"[0-9]{8}_[0-9]{6}_[0-9a-f]{8}")
_REASON = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def parse_session_id(text: str) -> SessionId:
    """Return ``text`` as a session id, or raise ``InvalidValue``; safe as a file name afterwards."""
    if not _SESSION_ID.fullmatch(text):
        raise InvalidValue(
            f"session id {text[:80]!r}: it has the form YYYYMMDD_HHMMSS_xxxxxxxx, the end in hex digits"
        )
    try:
        datetime.strptime(text[:15], "%Y%m%d_%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise InvalidValue(f"session id {text!r}: {text[:15]} is no date and time") from None
    return SessionId(text)


def parse_close_reason(text: str) -> CloseReason:
    """Return ``text`` as a close reason (one of ``CLOSE_REASONS`` or a short slug), or raise ``InvalidValue``."""
    if not _REASON.fullmatch(text):
        raise InvalidValue(
            f"close reason {text[:80]!r}: use a letter, then at most 31 lower-case letters, digits, '-' and '_'"
        )
    return CloseReason(text)


def state_of(closed_at: Micros | None) -> SessionState:
    """Return the state of a session that was closed at ``closed_at``; opening it again clears that time."""
    return "open" if closed_at is None else "closed"


def listed(*, title: str | None, message_total: int, started_at: Micros, now: Micros) -> bool:
    """Say whether lists show the session: an empty untitled one is hidden once it is older than 60 s."""
    titled = title is not None and title.strip() != ""
    return titled or message_total > 0 or now - started_at <= EMPTY_LISTED


def purge_due(*, deleted_at: Micros | None, now: Micros, days: int = BIN_DAYS) -> bool:
    """Say whether a deleted session has been in the bin for its whole time."""
    return deleted_at is not None and now - deleted_at >= _days(days)


def prune_due(
    *,
    closed_at: Micros | None,
    pinned_at: Micros | None,
    last_active_at: Micros,
    now: Micros,
    days: int = PRUNE_DAYS,
) -> bool:
    """Say whether ``prune`` takes the session: closed, not pinned, and inactive for longer than ``days``."""
    return closed_at is not None and pinned_at is None and now - last_active_at > _days(days)


def _days(days: int) -> Micros:
    if days < 0:
        raise InvalidValue(f"{days} days: give 0 or more")
    return days * DAY
