"""``keryx usage``: what models were used for, by day, by model and by conversation."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import keryx
from keryx.clock import DAY, SystemClock
from keryx.config import Configuration
from keryx.core.context.rules.prices import LIST_DATE, LIST_NAME
from keryx.core.context.rules.usage import ESTIMATED, UNKNOWN_MODEL, Amount, format_amount
from keryx.core.context.views.usage import Usage
from keryx.core.values.time_zone import datetime_of, zone_of

SESSIONS_SHOWN = 10


async def tell_days(configuration: Configuration, *, days: int, as_json: bool) -> str:
    """Return what the owner's conversations used in the last days, today included, as text or as JSON."""
    now, zone = SystemClock().now(), configuration.timezone
    until = datetime_of(now, zone_of(zone))
    since = until.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)
    configuration.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with keryx.open(configuration.database) as kx:
        used = await kx.usage(since=since, until=datetime_of(now + DAY, zone_of(zone)), zone=zone)
        spent = {each: amount for each, amount in used.sessions.items() if amount.has_tokens}
        dearest = sorted(spent, key=lambda each: (-spent[each].cost_micros, -spent[each].input_tokens, each))
        shown = dearest[:SESSIONS_SHOWN]
        names = {each: (await kx.get_session(each)).title or each for each in shown}
    return (
        _as_json(used) if as_json else _as_text(used, {names[each]: spent[each] for each in shown}, days=days)
    )


def _as_text(used: Usage, sessions: Mapping[str, Amount], *, days: int) -> str:
    if not used.total.has_tokens:
        return f"No model was asked in the last {days} days."
    parts = {
        "By day": {str(day): amount for day, amount in sorted(used.days.items())},
        "By model": {model or UNKNOWN_MODEL: amount for model, amount in used.models.items()},
        "By conversation": sessions,
    }
    lines = [f"The last {days} days: {format_amount(used.total)}"]
    for title, amounts in parts.items():
        lines.append(f"{title}:")
        lines += [
            f"  {name}: {format_amount(amount)}" for name, amount in amounts.items() if amount.has_tokens
        ]
    return "\n".join([*lines, ESTIMATED])


def _as_json(used: Usage) -> str:
    def told(amounts: Mapping[Any, Amount]) -> dict[str, dict[str, int]]:
        return {"" if key is None else str(key): asdict(amount) for key, amount in amounts.items()}

    record = {
        "estimated": True,
        "prices": {"list": LIST_NAME, "date": str(LIST_DATE)},
        "total": asdict(used.total),
        "days": told(used.days),
        "models": told(used.models),
        "sessions": told(used.sessions),
    }
    return json.dumps(record, indent=1)
