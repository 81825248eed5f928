"""What was used: tokens, cost and tool calls, by day, by model and by session.

Summed from the messages themselves, so every branch counts: what was undone was paid for. What models used to write
summaries is in no message, and counts beside them.
"""

from collections.abc import Iterable
from datetime import date
from typing import Final, NamedTuple

from keryx.clock import MINUTE, Micros
from keryx.core.context.rules.usage import Amount, total, total_by
from keryx.core.conversations.tables import sessions
from keryx.core.values.time_zone import datetime_of, zone_of
from keryx.store.database import ReadTx, Row
from keryx.values import dataclass

__all__ = ["Amount", "Usage", "show_usage"]

QUARTER: Final[Micros] = 15 * MINUTE
"""Every time zone's days begin at a multiple of it."""

_OF_MODELS: Final = ("input_tokens", "cached_tokens", "output_tokens", "thinking_tokens", "cost_micros")
"""What is summed of a model, in the order of the columns."""


class UsageRow(NamedTuple):
    """The sums of a quarter hour, a model and a session."""

    quarter: int
    model: str | None
    session_id: str
    messages: int
    tool_calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    thinking_tokens: int
    cost_micros: int

    @property
    def amount(self) -> Amount:
        """What was used."""
        return Amount(
            messages=self.messages,
            tool_calls=self.tool_calls,
            input_tokens=self.input_tokens,
            cached_tokens=self.cached_tokens,
            output_tokens=self.output_tokens,
            thinking_tokens=self.thinking_tokens,
            cost_micros=self.cost_micros,
        )


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
        rows = list_sums(tx, person_id, since=since, until=until)
    else:
        sessions.get_visible(tx, session_id, person_id=person_id)
        rows = list_sums_of_session(tx, session_id, since=since, until=until)
    rows += list_sums_of_summaries(tx, person_id, session_id=session_id, since=since, until=until)
    return Usage(
        total=total(row.amount for row in rows),
        days=total_by((datetime_of(row.quarter * QUARTER, clocks).date(), row.amount) for row in rows),
        models=total_by((row.model, row.amount) for row in rows),
        sessions=total_by((row.session_id, row.amount) for row in rows),
    )


def list_models_since(tx: ReadTx, person_id: int, *, since: Micros) -> list[tuple[str | None, Amount]]:
    """Return what each model was used for since then in what a person may see."""
    return _amounts(tx.rows("usage.list_models_since", person_id=person_id, since=since))


def list_models_of_last_turn(tx: ReadTx, session_id: str) -> list[tuple[str | None, Amount]]:
    """Return what each model was used for in a session's last turn that somebody waited for."""
    return _amounts(tx.rows("usage.list_models_of_last_turn", session_id=session_id))


def list_sums(tx: ReadTx, person_id: int, *, since: Micros, until: Micros) -> list[UsageRow]:
    """Return the sums of what a person may see from ``since`` up to, but without, ``until``."""
    return tx.all(UsageRow, "usage.list_sums", person_id=person_id, since=since, until=until, quarter=QUARTER)


def list_sums_of_summaries(
    tx: ReadTx, person_id: int, *, session_id: str | None, since: Micros, until: Micros
) -> list[UsageRow]:
    """Return what was used to write the summaries of what a person may see, or of one session of it."""
    return tx.all(
        UsageRow,
        "usage.list_sums_of_summaries",
        person_id=person_id,
        session_id=session_id,
        since=since,
        until=until,
        quarter=QUARTER,
    )


def list_sums_of_session(tx: ReadTx, session_id: str, *, since: Micros, until: Micros) -> list[UsageRow]:
    """Return the sums of one session, which the caller has made sure may be seen."""
    return tx.all(
        UsageRow,
        "usage.list_sums_of_session",
        session_id=session_id,
        since=since,
        until=until,
        quarter=QUARTER,
    )


def _amounts(rows: Iterable[Row]) -> list[tuple[str | None, Amount]]:
    return [(model, Amount(**dict(zip(_OF_MODELS, counts, strict=True)))) for model, *counts in rows]
