"""What ``/usage`` tells: tokens and estimated costs of this conversation and of today, by model."""

from collections.abc import Iterable

from keryx.clock import Micros
from keryx.domain.usage import ESTIMATED, Amount, tell_amount, tell_usage, total
from keryx.domain.zone import datetime_of, micros_of, zone_of
from keryx.store.database import Tx
from keryx.store.tables import sessions, usage
from keryx.transactions.command_handlers.context import CommandContext


def used_lines(tx: Tx, context: CommandContext) -> list[str]:
    """Return the lines; where others read the chat, today's are those of this conversation alone."""
    person_id, until = context.person.id, tx.now + 1
    session = sessions.get_visible(tx, context.session_id, person_id=person_id)
    summaries = usage.list_sums_of_summaries(tx, person_id, session_id=session.id, since=0, until=until)
    rows = [*usage.list_sums_of_session(tx, session.id, since=0, until=until), *summaries]
    today_at = day_begun_at(tx.now, zone=context.settings.reset.default.zone)
    if context.source.chat_type == "dm":
        written = usage.list_sums_of_summaries(tx, person_id, session_id=None, since=today_at, until=until)
        today = [*usage.list_models_since(tx, person_id, since=today_at), *_used(written)]
    else:
        today = _used(row for row in rows if row.quarter * usage.QUARTER >= today_at)
    last = by_model(usage.list_models_of_last_turn(tx, session.id))
    of_summaries = total(row.amount for row in summaries)
    return [
        *tell_usage("This conversation", by_model(_used(rows))),
        *([f"Summaries in it: {tell_amount(of_summaries)}"] if of_summaries.has_tokens else []),
        *(tell_usage("Its last turn", last) if total(last.values()).has_tokens else []),
        f"Tool calls in it: {session.tool_call_count:,}.",
        *tell_usage("Today", by_model(today)),
        ESTIMATED,
    ]


def _used(rows: Iterable[usage.UsageRow]) -> list[tuple[str | None, Amount]]:
    return [(row.model, row.amount) for row in rows]


def by_model(used: Iterable[tuple[str | None, Amount]]) -> dict[str | None, Amount]:
    """Return the sums of amounts that were used by models."""
    amounts: dict[str | None, list[Amount]] = {}
    for model, amount in used:
        amounts.setdefault(model, []).append(amount)
    return {model: total(each) for model, each in amounts.items()}


def day_begun_at(now: Micros, *, zone: str) -> Micros:
    """Return when the day began on the clocks of a zone."""
    midnight = datetime_of(now, zone_of(zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    return micros_of(midnight)
