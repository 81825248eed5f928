"""What was used: tokens, cost and tool calls, by day, by model and by session.

Summed from the messages themselves, so every branch counts: what was undone was paid for. What models used to write
summaries is in no message, and counts beside them.
"""

from collections.abc import Callable, Hashable, Iterable
from datetime import date
from typing import TypeVar

from keryx.clock import Micros
from keryx.domain.usage import Amount, total
from keryx.domain.zone import datetime_of, zone_of
from keryx.store.database import ReadTx
from keryx.store.tables import sessions, usage
from keryx.store.tables.usage import QUARTER, UsageRow
from keryx.values import dataclass

__all__ = ["Amount", "Usage", "show_usage"]

Of = TypeVar("Of", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The same amounts, told by local day, by model (None: not known) and by session."""

    total: Amount
    days: dict[date, Amount]
    models: dict[str | None, Amount]
    sessions: dict[str, Amount]


def show_usage(
    tx: ReadTx,
    *,
    person_id: int,
    since: Micros,
    until: Micros,
    zone: str = "UTC",
    session_id: str | None = None,
) -> Usage:
    """Return what was used from ``since`` up to, but without, ``until``, with days as the clocks of ``zone`` show."""
    clocks = zone_of(zone)
    if session_id is None:
        rows = usage.list_sums(tx, person_id, since=since, until=until)
    else:
        sessions.get_visible(tx, session_id, person_id=person_id)
        rows = usage.list_sums_of_session(tx, session_id, since=since, until=until)
    rows += usage.list_sums_of_summaries(tx, person_id, session_id=session_id, since=since, until=until)
    return Usage(
        total=total(row.amount for row in rows),
        days=_by(rows, lambda row: datetime_of(row.quarter * QUARTER, clocks).date()),
        models=_by(rows, lambda row: row.model),
        sessions=_by(rows, lambda row: row.session_id),
    )


def _by(rows: Iterable[UsageRow], of: Callable[[UsageRow], Of]) -> dict[Of, Amount]:
    groups: dict[Of, list[UsageRow]] = {}
    for row in rows:
        groups.setdefault(of(row), []).append(row)
    return {key: total(row.amount for row in group) for key, group in groups.items()}
