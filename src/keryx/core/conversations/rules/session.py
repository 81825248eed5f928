"""A session's id and states, and how long an unused session is kept.

The id never changes, whatever happens to the transcript. The rules only decide what is due.
"""

import re
from datetime import UTC, datetime
from typing import Literal, NewType

from keryx.clock import DAY, SECOND, Micros
from keryx.errors import InvalidValue

SessionId = NewType("SessionId", str)
CloseReason = NewType("CloseReason", str)
SessionState = Literal["open", "closed"]

EMPTY_LISTED: Micros = 60 * SECOND
BIN_DAYS = 30
PRUNE_DAYS = 90

_SESSION_ID = re.compile(r"[0-9]{8}_[0-9]{6}_[0-9a-f]{8}")
_REASON = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def parse_session_id(text: str) -> SessionId:
    """Return ``text`` as a session id, or raise ``InvalidValue``; a session id is safe as a file name."""
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
    """Return ``text`` as a close reason (a short slug), or raise ``InvalidValue``."""
    if not _REASON.fullmatch(text):
        raise InvalidValue(
            f"close reason {text[:80]!r}: use a letter, then at most 31 lower-case letters, digits, '-' and '_'"
        )
    return CloseReason(text)


def days_before(now: Micros, days: int) -> Micros:
    """Return the instant ``days`` before ``now``, or raise ``InvalidValue``; older sessions are due to be removed."""
    if days < 0:
        raise InvalidValue(f"{days} days: give 0 or more")
    return now - days * DAY
