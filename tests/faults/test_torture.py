"""Real processes, killed, frozen and cut off: nothing is lost or doubled, and others take over in time."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from keryx.cli.commands import app
from keryx.cli.torture import print_report
from keryx.config_load import load_config
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.testing.platform import FakePlatform
from keryx.testing.torture.agent import NoteTool, TortureAgent
from keryx.testing.torture.checks import Evidence
from keryx.testing.torture.effects import EffectLog, first_begun, open_tokens
from keryx.testing.torture.faults import ACCEPTED, OUTAGE, READY, TAKEN_OVER
from keryx.testing.torture.node import run_node
from keryx.testing.torture.options import TAKEN_OVER_SECONDS, Options
from keryx.testing.torture.records import PlatformRecords, ShownMessage, UserMessage
from keryx.testing.torture.report import Measured, Report
from keryx.testing.torture.run import clear_away, torture
from keryx.testing.torture.texts import Question, read_answer
from tests.flow.running import let_in, running, until

KILLS = 20
START_SECONDS_MAX = 10.0
"""A generous limit for busy machines; `keryx torture` reports the real time."""


async def test_real_gateways_lose_and_double_nothing_under_any_fault() -> None:
    """Run both at once, because the run with expiring leases mostly waits."""
    told: list[str] = []
    on_sqlite, on_postgres = await asyncio.gather(
        torture(Options(kills=KILLS, seed=1), tell=told.append),
        torture(
            Options(kills=0, losses=1, freezes=1, restarts=1, gateways=3, postgres=True, seed=1),
            tell=told.append,
        ),
    )
    for report in (on_sqlite, on_postgres):
        assert report.held, f"{report.to_text()}\n{report.folder}"
        assert report.messages >= 100
        assert report.counts["receipts lost"] > 0
    assert on_sqlite.tried["kill -9, restarted at once"] == KILLS
    assert len(on_sqlite.measured[ACCEPTED].seconds) == KILLS
    assert on_sqlite.measured[READY].at(0.5) <= START_SECONDS_MAX
    assert on_postgres.tried["gateway away for longer than its lease"] == 1
    assert 0 < on_postgres.measured[TAKEN_OVER].at(1.0) <= TAKEN_OVER_SECONDS
    assert on_postgres.tried["thawed after another gateway had taken over"] == 1
    assert len(on_postgres.measured[OUTAGE].seconds) == 1
    assert any("frozen" in line for line in told)


def invoke(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["torture", *arguments], env={"KERYX_HOME": str(home)})


def test_the_command_reports_its_faults_and_does_not_touch_the_user_s_files(tmp_path: Path) -> None:
    result = invoke(tmp_path, "--kills", "1", "--messages", "12", "--chats", "3", "--seed", "7", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["held"], told["seed"], told["folder"]) == (True, 7, None)
    assert told["tried"]["kill -9, restarted at once"] == 1
    assert "n1 killed (1 of 1)" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--gateways", "3"], "add --postgres"),
        (["--losses", "1"], "--gateways 3"),
        (["--restarts", "1"], "only a private server"),
        (["--kills", "-1"], "0 or more"),
        (["--chats", "0"], "at least one"),
        (["--database", "keryx.db"], "postgresql://"),
    ],
)
def test_impossible_options_are_refused_with_a_hint(tmp_path: Path, arguments: list[str], hint: str) -> None:
    result = invoke(tmp_path, *arguments)
    assert result.exit_code == 1
    assert hint in result.stderr


def test_a_database_that_is_not_empty_is_refused_before_the_first_kill(
    tmp_path: Path, postgres_url: str
) -> None:
    first = invoke(tmp_path, "--database", postgres_url, "--kills", "0", "--messages", "3", "--chats", "1")
    assert first.exit_code == 0, first.output
    again = invoke(tmp_path, "--database", postgres_url, "--kills", "0", "--messages", "3", "--chats", "1")
    assert again.exit_code == 1
    assert "is not empty" in again.stderr


def report_of(breaches: dict[str, list[str]]) -> Report:
    return Report(
        seed=11,
        where=Options().where,
        seconds=1.0,
        messages=1,
        chats=1,
        tried={},
        measured={},
        counts={},
        fates=Counter({"answered": 1}),
        breaches=breaches,
    )


def test_a_breach_exits_with_1_and_names_the_seed_and_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = PlatformRecords()
    records.messages["msg_1"] = UserMessage(id="msg_1", chat="a", no=1, kind="message", token="a-1")
    records.note_accepted(records.messages["msg_1"])
    records.note_shown(ShownMessage(id="k-0", chat="a", text="hello", reply_to="msg_1", node="n1", at=1.0))
    broken = report_of({"every message has one reply": [f"msg {no}" for no in range(7)]})
    report = clear_away(tmp_path, Evidence(records=records, fates=[("msg_1", None)]), broken)
    assert print_report(report, as_json=False) == 1
    said = capsys.readouterr()
    assert f"repeat with --seed 11. The logs are in {tmp_path}" in said.err
    assert "NO   every message has one reply" in said.out
    assert "and 2 more" in said.out
    kept = json.loads((tmp_path / "records.json").read_text())
    assert [each["id"] for each in kept["asked"] + kept["shown"]] == ["msg_1", "k-0"]
    assert json.loads((tmp_path / "report.json").read_text())["folder"] == str(tmp_path)


def test_a_run_without_a_breach_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    report = clear_away(tmp_path / "folder", Evidence(records=PlatformRecords()), report_of({"all": []}))
    assert report.folder is None
    assert list(tmp_path.iterdir()) == []


def test_durations_are_reported_by_median_and_maximum() -> None:
    assert str(Measured(seconds=(3.0, 1.0, 2.0))) == "p50 2.00 s, max 3.00 s"
    assert str(Measured()) == "not measured"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Database]:
    database = open_database(tmp_path / "keryx.db")
    yield database
    await database.close()


@pytest.fixture
async def platform(store: Database) -> FakePlatform:
    platform = FakePlatform()
    await let_in(store, platform, "ana")
    return platform


@pytest.fixture
def effect_log(tmp_path: Path) -> EffectLog:
    return EffectLog(tmp_path / "effects.jsonl")


async def test_the_agent_records_its_effects_and_quotes_the_questions(
    store: Database, platform: FakePlatform, effect_log: EffectLog
) -> None:
    question = Question(token="a-1", canary="canary-0a", traits=("once", "pure", "long", "slow"))
    tools = [NoteTool(effect_log, "once"), NoteTool(effect_log, "pure")]
    async with running(store, platform, TortureAgent(effect_log), tools=tools):
        platform.say(question.text())
        await until(lambda: any("that was all" in shown.text for shown in platform.shown))
        platform.say("hello")
        await until(lambda: any("nothing to answer" in shown.text for shown in platform.shown))
    assert read_answer(platform.shown[0].text) == ["a-1"]
    effects = {effect.kind: effect for effect in effect_log.read()}
    assert set(effects) == {"begin", "once", "pure", "end"}
    assert effects["once"].token == effects["pure"].token == "a-1"
    assert open_tokens(effect_log.read(), pid=os.getpid()) == []
    assert first_begun(effect_log.read(), {"a-1"}, after=0, other_than=os.getpid()) is None
    assert first_begun(effect_log.read(), {"a-1"}, after=0, other_than=1) == effects["begin"].at


async def test_a_node_serves_with_the_torture_agent_until_sigterm(
    tmp_path: Path, effect_log: EffectLog, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = load_config({"KERYX_HOME": str(tmp_path)}, tmp_path)
    serving = asyncio.create_task(run_node(configuration, effect_log))
    said = ""

    def is_ready() -> bool:
        nonlocal said
        said += capsys.readouterr().out
        return said.startswith("ready ")

    await until(is_ready)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(serving, 30)
