"""``keryx usage``: the tokens and costs of models, by day, by model and by conversation."""

import asyncio
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


def print_usage(configuration: Configuration, *, days: int, as_json: bool) -> int:
    """Print the usage of the owner's conversations in the last days, including today, and return the exit code."""
    used, sessions = asyncio.run(_read_usage(configuration, days=days))
    print(_as_json(used) if as_json else _as_text(used, sessions, days=days))
    return 0


async def _read_usage(configuration: Configuration, *, days: int) -> tuple[Usage, dict[str, Amount]]:
    """Return the usage, and that of the most expensive sessions by title."""
    now, zone = SystemClock().now(), configuration.timezone
    until = datetime_of(now, zone_of(zone))
    since = until.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)
    configuration.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with keryx.open(configuration.database) as kx:
        used = await kx.usage(since=since, until=datetime_of(now + DAY, zone_of(zone)), zone=zone)
        spent = {each: amount for each, amount in used.sessions.items() if amount.has_tokens}
        by_cost = sorted(spent, key=lambda each: (-spent[each].cost_micros, -spent[each].input_tokens, each))
        shown = by_cost[:SESSIONS_SHOWN]
        return used, {(await kx.get_session(each)).title or each: spent[each] for each in shown}


def _as_text(used: Usage, sessions: Mapping[str, Amount], *, days: int) -> str:
    if not used.total.has_tokens:
        return f"No model was used in the last {days} days."
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
    def record_of(amounts: Mapping[Any, Amount]) -> dict[str, dict[str, int]]:
        return {"" if key is None else str(key): asdict(amount) for key, amount in amounts.items()}

    record = {
        "estimated": True,
        "prices": {"list": LIST_NAME, "date": str(LIST_DATE)},
        "total": asdict(used.total),
        "days": record_of(used.days),
        "models": record_of(used.models),
        "sessions": record_of(used.sessions),
    }
    return json.dumps(record, indent=1)
