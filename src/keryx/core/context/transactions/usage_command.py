"""``/usage``: tokens and estimated costs of this conversation and of today, by model."""

from collections.abc import Iterable

from keryx.clock import Micros
from keryx.core.context.rules.usage import ESTIMATED, Amount, format_amount, format_usage, total, total_by
from keryx.core.context.views import usage as views
from keryx.core.conversations.tables import sessions
from keryx.core.conversations.transactions.command_context import CommandContext, CommandOutcome, say
from keryx.core.turns.tables import turns
from keryx.core.values.time_zone import datetime_of, micros_of, zone_of
from keryx.store.database import Tx


def usage(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Show tokens and estimated cost of this conversation and of today, by model, and how full the context is."""
    context_usage = turns.find_context_usage(tx, context.session_id)
    lines = [] if context_usage is None else context_usage.lines()
    return say(context, "\n".join([*used_lines(tx, context), *lines]))


def used_lines(tx: Tx, context: CommandContext) -> list[str]:
    """Return the lines. In a chat that others read, today's usage is that of this conversation alone."""
    person_id, until = context.person.id, tx.now + 1
    session = sessions.get_visible(tx, context.session_id, person_id=person_id)
    rows = views.list_sums_of_session(tx, session.id, since=0, until=until)
    today_at = day_begun_at(tx.now, zone=context.settings.reset.default.zone)
    if context.source.chat_type == "dm":
        today = views.list_models_since(tx, person_id, since=today_at)
    else:
        today = _used(row for row in rows if row.quarter * views.QUARTER >= today_at)
    last = total_by(views.list_models_of_last_turn(tx, session.id))
    of_summaries = total(row.amount for row in rows if row.is_summary)
    return [
        *format_usage("This conversation", total_by(_used(rows))),
        *([f"Summaries in it: {format_amount(of_summaries)}"] if of_summaries.has_tokens else []),
        *(format_usage("Its last turn", last) if total(last.values()).has_tokens else []),
        f"Tool calls in it: {session.tool_call_count:,}.",
        *format_usage("Today", total_by(today)),
        ESTIMATED,
    ]


def _used(rows: Iterable[views.UsageRow]) -> list[tuple[str | None, Amount]]:
    return [(row.model, row.amount) for row in rows]


def day_begun_at(now: Micros, *, zone: str) -> Micros:
    """Return when the day began on the clocks of a zone."""
    midnight = datetime_of(now, zone_of(zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    return micros_of(midnight)
