"""What ``/usage`` tells: tokens and estimated costs of this conversation and of today, by model."""

from collections.abc import Iterable

from keryx.clock import Micros
from keryx.domain.usage import ESTIMATED, Amount, tell_usage, total
from keryx.domain.zone import datetime_of, micros_of, zone_of
from keryx.store.database import Tx
from keryx.store.tables import sessions, usage
from keryx.transactions.command_handlers.context import CommandContext


def used_lines(tx: Tx, context: CommandContext) -> list[str]:
    """Return the lines; where others read the chat, today's are those of this conversation alone."""
    person_id = context.person.id
    session = sessions.get_visible(tx, context.session_id, person_id=person_id)
    rows = usage.list_sums_of_session(tx, session.id, since=0, until=tx.now + 1)
    today_at = day_begun_at(tx.now, zone=context.settings.reset.default.zone)
    if context.source.chat_type == "dm":
        today = by_model(usage.list_models_since(tx, person_id, since=today_at))
    else:
        today = by_model((row.model, row.amount) for row in rows if row.quarter * usage.QUARTER >= today_at)
    return [
        *tell_usage("This conversation", by_model((row.model, row.amount) for row in rows)),
        f"Tool calls in it: {session.tool_call_count:,}.",
        *tell_usage("Today", today),
        ESTIMATED,
    ]


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
