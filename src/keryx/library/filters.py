"""The keyword arguments that narrow lists of sessions and searches, and the times that callers give."""

from datetime import datetime, timedelta
from typing import Any, TypedDict

from keryx.clock import Micros
from keryx.core.conversations.views.session_list import SessionFilter
from keryx.core.search.views.search import Order
from keryx.core.values.time_zone import micros_of
from keryx.errors import InvalidValue

_MICROSECOND = timedelta(microseconds=1)


class ListFilter(TypedDict, total=False):
    """Which sessions ``list_sessions`` returns."""

    source: str | None
    active_within: timedelta | None
    project: str | None
    tag: str | None
    archived: bool


class SearchFilter(TypedDict, total=False):
    """Where ``search`` looks, in which order it returns hits, and how many neighbours it shows."""

    session_id: str | None
    source: str | None
    order: Order
    neighbours: int


def session_filter(where: ListFilter) -> SessionFilter:
    """Return the filter that the view takes."""
    values: dict[str, Any] = dict(where)
    if values.get("active_within") is not None:
        values["active_within"] //= _MICROSECOND
    return SessionFilter(**values)


def micros_from(moment: datetime) -> Micros:
    """Return an aware time in microseconds; raise InvalidValue for a naive one."""
    if moment.tzinfo is None:
        raise InvalidValue(f"the time {moment.isoformat()} has no time zone; give it one (tzinfo)")
    return micros_of(moment)
