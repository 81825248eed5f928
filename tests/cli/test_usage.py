"""``keryx usage``, for people and for programs."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import keryx
from keryx.cli.commands import app
from keryx.core.context.rules.usage import ESTIMATED


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"KERYX_HOME": str(tmp_path / "home"), "KERYX_DATABASE": str(tmp_path / "keryx.db")}


def invoke(home: dict[str, str], *arguments: str) -> Result:
    return CliRunner().invoke(app, ["usage", *arguments], env=home)


async def spend(address: str) -> str:
    async with keryx.open(address) as kx:
        session = await kx.create_session(platform="local", title="Trip to Rome")
        silent = await kx.create_session(platform="local", title="Silence")
        await kx.append(silent.id, role="user", text="hm")
        await kx.append(session.id, role="user", text="Where to?")
        await kx.append(
            session.id,
            role="assistant",
            text="Rome.",
            input_tokens=1_200,
            cached_tokens=200,
            output_tokens=30,
            thinking_tokens=20,
            cost_micros=1_500,
        )
        return session.id


def test_no_usage_is_reported(home: dict[str, str]) -> None:
    result = invoke(home)
    assert (result.exit_code, result.stdout) == (0, "No model was used in the last 7 days.\n")


def test_usage_is_shown_by_day_model_and_conversation(home: dict[str, str]) -> None:
    session_id = asyncio.run(spend(home["KERYX_DATABASE"]))
    amount = "1,200 tokens in (200 cached), 30 out (20 thinking), about $0.0015."
    first, by_day, day, *rest = invoke(home, "--days", "1").stdout.splitlines()
    assert (first, by_day) == (f"The last 1 days: {amount}", "By day:")
    assert day.endswith(amount)
    assert rest == [
        "By model:",
        f"  an unknown model: {amount}",
        "By conversation:",
        f"  Trip to Rome: {amount}",
        ESTIMATED,
    ]
    told = json.loads(invoke(home, "--json").stdout)
    assert (told["estimated"], told["prices"]["date"]) == (True, "2026-10-30")
    assert told["sessions"][session_id]["thinking_tokens"] == 20
    assert told["models"][""]["cost_micros"] == told["total"]["cost_micros"] == 1_500


def test_an_invalid_number_of_days_is_refused(home: dict[str, str]) -> None:
    assert invoke(home, "--days", "0").exit_code == 2
