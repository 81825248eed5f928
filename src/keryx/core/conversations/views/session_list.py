"""Lists of sessions: pinned sessions first, then by last activity, a page at a time.

A page costs what it shows: it walks the index of each audience of the person and stops.
"""

import re
from typing import Any, Final, NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.session import EMPTY_LISTED, parse_session_id
from keryx.core.conversations.tables.sessions import Session
from keryx.core.conversations.tables.sessions import get_visible as get_session
from keryx.core.people.tables import people
from keryx.errors import InvalidValue
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = [
    "EVERYTHING",
    "Session",
    "SessionCount",
    "SessionFilter",
    "SessionPage",
    "count",
    "get_session",
    "list_recent",
    "list_sessions",
]

PAGE_MAX: Final = 1_000

_TIME: Final = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Which sessions a list contains: by platform, time since the last activity, project name and tag."""

    source: str | None = None
    active_within: Micros | None = None
    project: str | None = None
    tag: str | None = None
    archived: bool = False

    def __post_init__(self) -> None:
        if self.active_within is not None and self.active_within < 0:
            raise InvalidValue(f"active_within of {self.active_within} µs: give a time from 0 on")


EVERYTHING: Final = SessionFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """Sessions in the order of the list, and the cursor of the next page; None on the last page."""

    rows: tuple[Session, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCount:
    """The number of sessions, and of the messages in them."""

    sessions: int
    messages: int


class _ListPosition(NamedTuple):
    """The position of a session in a list. The sessions after it have lesser values."""

    is_pinned: bool
    last_active_at: Micros
    id: str


_TOP: Final = _ListPosition(is_pinned=True, last_active_at=2**63 - 1, id="")
"""The position before all sessions."""
_UNPINNED: Final = _TOP._replace(is_pinned=False)
"""The position after all pinned sessions."""


def list_sessions(
    tx: ReadTx,
    *,
    person_id: int,
    limit: int = 50,
    after: str | None = None,
    where: SessionFilter = EVERYTHING,
) -> SessionPage:
    """Return a page of the sessions that a person may see; ``after`` is ``next`` of the previous page.

    Sessions in the bin are left out, and untitled sessions that stayed empty for a minute.
    """
    if not 1 <= limit <= PAGE_MAX:
        raise InvalidValue(f"a page of {limit} sessions: ask for 1 to {PAGE_MAX}")
    statement, params = _query(tx, person_id, where)

    def read(position: _ListPosition, *, limit: int) -> list[Session]:
        """Return the next sessions of one section of the list: the pinned sessions, or the others."""
        pinned, last_active_at, last_id = position
        return tx.all(
            Session,
            statement,
            pinned=int(pinned),
            last_active_at=last_active_at,
            id=last_id,
            limit=limit,
            **params,
        )

    position = _TOP if after is None else _parse(after)
    # One row more than the page has shows whether there is a next page.
    rows = read(position, limit=limit + 1)
    if position.is_pinned and len(rows) <= limit:
        rows += read(_UNPINNED, limit=limit + 1 - len(rows))
    if len(rows) <= limit:
        return SessionPage(rows=tuple(rows), next=None)
    return SessionPage(rows=tuple(rows[:limit]), next=_format(rows[limit - 1]))


def list_recent(tx: ReadTx, *, audience_id: int, limit: int) -> list[Session]:
    """Return the recent sessions of an audience: pinned sessions first, then by last activity."""
    return tx.all(Session, "session_list.list_recent", audience_id=audience_id, limit=limit)


def count(tx: ReadTx, *, person_id: int, source: str | None = None) -> SessionCount:
    """Count the sessions that a person may see, archived ones included, on one platform or on all."""
    [(sessions, messages)] = tx.rows("session_list.count", person_id=person_id, platform=source)
    return SessionCount(sessions=sessions, messages=messages)


def _query(tx: ReadTx, person_id: int, where: SessionFilter) -> tuple[str, dict[str, Any]]:
    """Return the statement that lists the sessions, and its parameters; walk a single index if possible."""
    if where == EVERYTHING:
        audiences = people.list_audiences(tx, person_id)
        if len(audiences) == 1:
            return "session_list.walk", {"audience_id": audiences[0], "empty_listed": EMPTY_LISTED}
    params: dict[str, Any] = {
        "person_id": person_id,
        "platform": where.source,
        "active_since": 0 if where.active_within is None else tx.now - where.active_within,
        "project": where.project,
        "tag": where.tag,
    }
    if where.archived:
        return "session_list.list_archived", params
    return "session_list.merge", params | {"empty_listed": EMPTY_LISTED}


def _format(session: Session) -> str:
    return f"{int(session.pinned_at is not None)}.{session.last_active_at}.{session.id}"


def _parse(cursor: str) -> _ListPosition:
    section, _, rest = cursor.partition(".")
    last_active_at, _, session_id = rest.partition(".")
    try:
        if section not in ("0", "1") or not _TIME.fullmatch(last_active_at):
            raise InvalidValue("not a position")
        return _ListPosition(
            is_pinned=section == "1", last_active_at=int(last_active_at), id=parse_session_id(session_id)
        )
    except InvalidValue:
        raise InvalidValue(
            f"{cursor[:40]!r} is not where a page begins; use the `next` of the page before"
        ) from None
