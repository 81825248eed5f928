"""Lists of sessions: pinned first, then by last activity, a page at a time.

A page costs what it shows, not what there is: it walks the index of each audience of the person and stops.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from keryx.clock import Micros
from keryx.core.conversations.rules.session import parse_session_id
from keryx.core.conversations.views import _session_list_rows as session_list_rows
from keryx.core.conversations.views._session_list_rows import Filters, ListPosition, Session
from keryx.core.people.tables import people
from keryx.errors import InvalidValue, NotFound
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
    "list_sessions",
]

PAGE_MAX: Final = 1_000

_TIME: Final = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """What a list is narrowed to: a platform, a time since the last activity, a project's name, a tag."""

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
    """Some sessions in order, and where the next page begins; None after the last one."""

    rows: tuple[Session, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCount:
    """How many sessions there are, and how many messages are kept in them."""

    sessions: int
    messages: int


def list_sessions(
    tx: ReadTx,
    *,
    person_id: int,
    limit: int = 50,
    after: str | None = None,
    where: SessionFilter = EVERYTHING,
) -> SessionPage:
    """Return a page of what a person may see; ``after`` is the ``next`` of the page before.

    Sessions in the bin are not listed, nor are untitled ones that stayed empty for a minute.
    """
    if not 1 <= limit <= PAGE_MAX:
        raise InvalidValue(f"a page of {limit} sessions: ask for 1 to {PAGE_MAX}")
    place = session_list_rows.TOP if after is None else _parse(after)
    section = _sections(tx, person_id, where)
    # One more than asked for, to know whether there is a next page.
    rows = section(after=place, limit=limit + 1)
    if place.is_pinned and len(rows) <= limit:
        rows += section(after=session_list_rows.UNPINNED, limit=limit + 1 - len(rows))
    if len(rows) <= limit:
        return SessionPage(rows=tuple(rows), next=None)
    return SessionPage(rows=tuple(rows[:limit]), next=_format(rows[limit - 1]))


def get_session(tx: ReadTx, session_id: str, *, person_id: int) -> Session:
    """Return a session this person may see; any other is not found."""
    session = session_list_rows.find(tx, session_id, person_id=person_id)
    if session is None:
        raise NotFound(f"There is no session {session_id} that you may see.")
    return session


def count(tx: ReadTx, *, person_id: int, source: str | None = None) -> SessionCount:
    """Count what a person may see, archived sessions included, on one platform or on all."""
    sessions, messages = session_list_rows.count(tx, person_id, platform=source)
    return SessionCount(sessions=sessions, messages=messages)


def _sections(tx: ReadTx, person_id: int, where: SessionFilter) -> Callable[..., list[Session]]:
    """Return what reads on in the pinned section or in the other one, along one index if it can."""
    if where == EVERYTHING:
        audiences = people.list_audiences(tx, person_id)
        if len(audiences) == 1:
            return partial(session_list_rows.walk, tx, audiences[0])
    filters = Filters(
        platform=where.source,
        active_since=0 if where.active_within is None else tx.now - where.active_within,
        project=where.project,
        tag=where.tag,
    )
    return partial(
        session_list_rows.list_archived if where.archived else session_list_rows.merge, tx, person_id, filters
    )


def _format(session: Session) -> str:
    return f"{int(session.pinned_at is not None)}.{session.last_active_at}.{session.id}"


def _parse(cursor: str) -> ListPosition:
    section, _, rest = cursor.partition(".")
    last_active_at, _, session_id = rest.partition(".")
    try:
        if section not in ("0", "1") or not _TIME.fullmatch(last_active_at):
            raise InvalidValue("no place")
        return ListPosition(
            is_pinned=section == "1", last_active_at=int(last_active_at), id=parse_session_id(session_id)
        )
    except InvalidValue:
        raise InvalidValue(
            f"{cursor[:40]!r} is not where a page begins; use the `next` of the page before"
        ) from None
