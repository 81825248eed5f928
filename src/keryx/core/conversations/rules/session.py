"""A session's id, states and links, and how long an unused session is kept.

The id never changes, whatever happens to the transcript. The rules only decide what is due.
"""

import re
from datetime import UTC, datetime
from typing import Final, Literal, NewType, get_args

from keryx.clock import DAY, SECOND, Micros
from keryx.errors import InvalidValue
from keryx.values import dataclass

SessionId = NewType("SessionId", str)
CloseReason = NewType("CloseReason", str)
SessionState = Literal["open", "closed"]
LinkKind = Literal["reset", "fork", "delegation", "import"]
LINK_KINDS: Final[tuple[LinkKind, ...]] = get_args(LinkKind)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLink:
    """``to_session_id`` came from ``from_session_id``, or an import made it from ``origin`` in another program."""

    kind: LinkKind
    to_session_id: str
    from_session_id: str | None = None
    at_seq: int | None = None
    origin: str | None = None
    created_at: Micros

    def __post_init__(self) -> None:
        if self.kind not in LINK_KINDS:
            raise InvalidValue(f"link kind {self.kind!r} is not one of {', '.join(LINK_KINDS)}")
        if self.from_session_id == self.to_session_id:
            raise InvalidValue(f"session {self.to_session_id} cannot be linked to itself")
        if self.kind == "import":
            if not self.origin:
                raise InvalidValue(
                    "an import link names its origin (program and id), so that a second import finds it"
                )
        elif self.from_session_id is None:
            raise InvalidValue(f"a {self.kind} link names the session it comes from")
        if self.kind == "fork" and (self.at_seq is None or self.at_seq < 0):
            raise InvalidValue("a fork link names the last message that both sessions share, or 0")
