"""Usage: tokens, cost and tool calls, by day, by model and by session; and the usage of a context window.

Sums include the messages of all branches, because undone messages were paid for too, and the usage of summaries, which
are no messages.
"""

from dataclasses import fields
from datetime import date
from typing import Final, NamedTuple

from keryx.clock import MINUTE, Micros
from keryx.core.context.rules.context_usage import ContextUsage
from keryx.core.context.rules.usage import Amount as Amount
from keryx.core.context.rules.usage import total, total_by
from keryx.core.conversations.tables import sessions
from keryx.core.turns.tables import turns
from keryx.core.values.time_zone import datetime_of, zone_of
from keryx.store.database import ReadTx, Row
from keryx.values import dataclass

QUARTER: Final[Micros] = 15 * MINUTE
"""In every time zone, days begin at a multiple of this."""

_AMOUNTS: Final = tuple(field.name for field in fields(Amount))
_TOKENS: Final = ("input_tokens", "cached_tokens", "output_tokens", "thinking_tokens", "cost_micros")
"""The sums of a model, in the order of the columns."""


class UsageRow(NamedTuple):
    """The sums of a quarter hour, a model and a session."""

    quarter: int
    model: str | None
    session_id: str
    is_summary: int
    """Whether these are the sums of summaries."""
    messages: int
    tool_calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    thinking_tokens: int
    cost_micros: int

    @property
    def amount(self) -> Amount:
        """The sums as an amount."""
        return Amount(**{name: getattr(self, name) for name in _AMOUNTS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Amounts by local day, by model (None: unknown) and by session."""

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
    """Return the usage from ``since`` until before ``until``, with the days of ``zone``."""
    clocks = zone_of(zone)
    if session_id is None:
        rows = list_sums(tx, person_id, since=since, until=until)
    else:
        sessions.get_visible(tx, session_id, person_id=person_id)
        rows = list_sums_of_session(tx, session_id, since=since, until=until)
    return Usage(
        total=total(row.amount for row in rows),
        days=total_by((datetime_of(row.quarter * QUARTER, clocks).date(), row.amount) for row in rows),
        models=total_by((row.model, row.amount) for row in rows),
        sessions=total_by((row.session_id, row.amount) for row in rows),
    )


def list_sums(tx: ReadTx, person_id: int, *, since: Micros, until: Micros) -> list[UsageRow]:
    """Return the sums of the sessions that a person may see, those of summaries apart."""
    return tx.all(UsageRow, "usage.list_sums", person_id=person_id, since=since, until=until, quarter=QUARTER)


def list_sums_of_session(tx: ReadTx, session_id: str, *, since: Micros, until: Micros) -> list[UsageRow]:
    """Return the sums of a session, those of summaries apart. The caller checks that the person may see the session."""
    return tx.all(
        UsageRow,
        "usage.list_sums_of_session",
        session_id=session_id,
        since=since,
        until=until,
        quarter=QUARTER,
    )


def list_models_since(tx: ReadTx, person_id: int, *, since: Micros) -> list[tuple[str | None, Amount]]:
    """Return the usage of each model since a time, in the sessions that a person may see."""
    return _amounts(tx.rows("usage.list_models_since", person_id=person_id, since=since))


def list_models_of_last_turn(tx: ReadTx, session_id: str) -> list[tuple[str | None, Amount]]:
    """Return the usage of each model in the session's last turn with an answer."""
    return _amounts(tx.rows("usage.list_models_of_last_turn", session_id=session_id))


def show_context_usage(tx: ReadTx, session_id: str, *, person_id: int) -> ContextUsage | None:
    """Return the usage of the context window in the last request to a model; None if there was none."""
    sessions.get_visible(tx, session_id, person_id=person_id)
    return turns.find_context_usage(tx, session_id)


def _amounts(rows: list[Row]) -> list[tuple[str | None, Amount]]:
    return [(model, Amount(**dict(zip(_TOKENS, counts, strict=True)))) for model, *counts in rows]
