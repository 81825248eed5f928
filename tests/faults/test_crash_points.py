"""A crash before any statement of a transaction leaves no trace of it, and a second run completes it."""

import importlib
import inspect
import pkgutil
import re
import shutil
from pathlib import Path

import pytest

import keryx.core
import keryx.store
from keryx.core.conversations.transactions.command_context import CommandContext
from keryx.ids import Ids
from keryx.store.database import Row, Tx
from keryx.store.opening import open_database
from keryx.testing.clock import FakeClock
from keryx.testing.faults import Crash, FaultHook
from tests.conformance.stage import Stage
from tests.faults.scenarios import PARTS, SCENARIOS, Scenario
from tests.faults.world import World, build_world

MIGRATIONS = Path(keryx.store.__path__[0]) / "migrations" / "sqlite"
SCHEMA = "\n".join(file.read_text() for file in sorted(MIGRATIONS.glob("*.sql")))
TABLES = re.findall(r"^CREATE TABLE (\w+)", SCHEMA, re.MULTILINE)
DIGESTS = " UNION ALL ".join(
    f"SELECT '{table}', md5(COALESCE(string_agg(CAST(x AS TEXT), ',' ORDER BY CAST(x AS TEXT)), '')) FROM {table} x"
    for table in TABLES
)
QUIET = {"program_sessions.enter_store", "renew_turn.renew_turn"}
"""Transactions that change nothing in this world while the clock stands still."""


class Trial:
    """A world in a store that dies on request."""

    def __init__(self, stage: Stage, world: World, faults: FaultHook) -> None:
        self.stage = stage
        self.world = world
        self.faults = faults

    async def crash_everywhere(self, scenario: Scenario) -> object:
        """Die before each statement, then check that a run has the original outcome; return the outcome."""
        expected, statements = await self._rehearse(scenario)
        before = await self.everything()
        for number in range(1, len(statements) + 1):
            self.faults.crash_before(number)
            with pytest.raises(Crash):
                await self._run(scenario)
            self.faults.disarm()
            if self.stage.database.dialect == "sqlite":
                assert await self.everything() == before, (
                    f"a crash before {statements[number - 1]} left a change"
                )
        # On PostgreSQL once for all crashes: the digests of all tables take longer than the rest of the test.
        assert await self.everything() == before, f"a crash before one of {statements} left a change"
        assert (await self._rehearse(scenario))[0] == expected
        return expected

    async def run(self, scenario: Scenario) -> object:
        """Run the scenario and commit."""
        outcome = await self._run(scenario)
        await self.stage.check()
        return outcome

    async def _run(self, scenario: Scenario) -> object:
        return await self.stage.database.write(lambda tx: scenario(tx, self.world, Ids(seed=3)))

    async def _rehearse(self, scenario: Scenario) -> tuple[object, list[str]]:
        """Run the scenario to its end, then die instead of committing; return the outcome and the statements."""
        outcomes: list[object] = []

        def rehearse(tx: Tx) -> None:
            outcomes.append(scenario(tx, self.world, Ids(seed=3)))
            raise Crash("instead of the commit")

        self.faults.disarm()
        with pytest.raises(Crash):
            await self.stage.database.write(rehearse)
        return without_ids(outcomes[0]), self.faults.disarm()

    async def everything(self) -> list[list[Row]]:
        """Return all rows, or on PostgreSQL, in one round trip, a digest of each table."""
        if self.stage.database.dialect == "postgres":
            return [await self.stage.rows(DIGESTS)]
        return await self.stage.rows_of(*(f"SELECT * FROM {table}" for table in TABLES))


def without_ids(outcome: object) -> str:
    """Return an outcome as text, without the numbers that a sequence issues only once."""
    if type(outcome) is int:
        return "a number"
    return re.sub(r"(\w*(?:id|ids|deliveries|_no|seq|queued)=)\(?[\d, ]+\)?", r"\1…", repr(outcome))


@pytest.fixture(scope="module")
async def world_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, World, FakeClock, Stage]:
    """Return a closed SQLite store that contains the world."""
    path = tmp_path_factory.mktemp("world") / "keryx.db"
    clock = FakeClock()
    stage = Stage(database=open_database(path, clock=clock), clock=clock)
    world = await build_world(stage)
    await stage.database.close()
    return path, world, clock, stage


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_crash_inside_a_transaction_leaves_no_trace_on_sqlite(
    name: str, world_file: tuple[Path, World, FakeClock, Stage], tmp_path: Path
) -> None:
    path, world, clock, _ = world_file
    for file in path.parent.iterdir():
        shutil.copy(file, tmp_path / file.name)
    faults = FaultHook()
    database = open_database(tmp_path / path.name, clock=clock, hook=faults)
    trial = Trial(Stage(database=database, clock=clock), world, faults)
    expected = await trial.crash_everywhere(SCENARIOS[name])
    before = await trial.everything()
    assert without_ids(await trial.run(SCENARIOS[name])) == expected
    assert (await trial.everything() != before) == (name not in QUIET), (
        "a scenario that does nothing shows nothing"
    )
    await database.close()


async def test_a_crash_inside_a_transaction_leaves_no_trace_on_postgres(
    postgres_url: str, clock: FakeClock
) -> None:
    faults = FaultHook()
    database = open_database(postgres_url, clock=clock, hook=faults)
    stage = Stage(database=database, clock=clock)
    trial = Trial(stage, await build_world(stage), faults)
    for scenario in SCENARIOS.values():
        await trial.crash_everywhere(scenario)
    await database.close()


def test_every_transaction_has_a_scenario() -> None:
    found = set()
    for found_module in pkgutil.walk_packages(keryx.core.__path__, "keryx.core."):
        subject, _, rest = found_module.name.removeprefix("keryx.core.").partition(".")
        layer, _, name = rest.partition(".")
        if layer != "transactions":
            continue
        module = importlib.import_module(found_module.name)
        for function_name, function in inspect.getmembers(module, inspect.isfunction):
            annotations = [each.annotation for each in inspect.signature(function).parameters.values()]
            is_own = function.__module__ == module.__name__ and not function_name.startswith("_")
            # Handlers of commands run inside accept_message.
            if is_own and annotations[:1] == [Tx] and CommandContext not in annotations[:2]:
                found.add(f"{name or subject}.{function_name}")
    tried = {name.partition(":")[0] for name in SCENARIOS}
    assert found == tried | PARTS
    assert not tried & PARTS
