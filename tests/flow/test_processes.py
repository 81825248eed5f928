"""Real background processes: started by an agent, surviving their starter, found again, reported once."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from keryx.app import open_system
from keryx.backends.local.folder import Folder, SupervisorGone
from keryx.backends.local.registry import ProcessLimits, Registry
from keryx.backends.local.supervisor import protocol
from keryx.clock import HOUR, MINUTE, SystemClock
from keryx.config import Settings
from keryx.config_load import load_config
from keryx.core.conversations.rules.message import text_of
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.transactions.open_session import open_session
from keryx.core.people.rules.toolset import ToolsetSettings
from keryx.core.people.tables import people
from keryx.core.processes import tables as processes
from keryx.core.processes.backend import BackgroundCommand
from keryx.core.processes.rules import NoticePolicy
from keryx.core.processes.tables import Process
from keryx.core.processes.transactions.record_process import NewProcess, record_started
from keryx.core.turns.tables import inbox
from keryx.core.values.json_value import JsonValue
from keryx.errors import ToolFailed
from keryx.gateway.processes import ProcessWatcher
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.testing.clock import FakeClock
from keryx.testing.faults import Crash
from keryx.testing.model_server import Asked, Call, ModelServer, Reply
from keryx.testing.platform import FakePlatform
from keryx.tools.shell.process import ProcessTool
from keryx.tools.shell.terminal import Terminal
from keryx.tools.tool import ToolCall
from keryx.tools.workspace import Workspaces
from tests.architecture.source import ROOT
from tests.flow.agents.test_model_turns import agent_on
from tests.flow.crashing_store import CrashingStore
from tests.flow.running import running, until

EVERYTHING = Settings(
    toolsets=ToolsetSettings(by_platform_and_role={("fake", "owner"): frozenset({"all", "terminal"})})
)
ENVIRONMENT = {"PATH": os.environ["PATH"]}
QUICK = ProcessLimits(output_bytes_max=100_000, kill_seconds=0.2)
PATIENCE_SECONDS = 20.0


class Place:
    """A data folder with its store and one session, and an agent's calls of the process tools."""

    def __init__(self, database: Database, data_dir: Path) -> None:
        self.database = database
        self.root = data_dir / "processes"
        self.registry = Registry(database, self.root, clock=SystemClock(), ids=Ids(), limits=QUICK)
        self.tool = ProcessTool(database, self.registry)
        self.use = ToolCall(arguments={}, session_id="", person_id=0, audience_id=None, key="k")

    async def open(self) -> "Place":
        owner = await self.database.write(people.ensure_owner)
        session_id = await self.database.write(
            lambda tx: open_session(tx, Ids(), source=LOCAL_CLI, owner=owner)
        )
        self.use = replace(self.use, session_id=session_id, person_id=owner.id)
        return self

    def watcher(self) -> ProcessWatcher:
        return ProcessWatcher(self.database, self.registry, clock=SystemClock())

    async def start(self, command: str, *, has_pty: bool = False, notice: NoticePolicy | None = None) -> int:
        job = BackgroundCommand(
            command=command,
            folder=self.root.parent,
            environment=ENVIRONMENT,
            has_pty=has_pty,
            notice=notice or NoticePolicy(),
        )
        return await self.registry.start(job, session_id=self.use.session_id, person_id=self.use.person_id)

    async def do(self, action: str, number: int, **arguments: JsonValue) -> str:
        given = {"action": action, "number": number, **arguments}
        return str(await self.tool.run(replace(self.use, arguments=given)))

    async def refused(self, action: str, number: int, **arguments: JsonValue) -> str:
        with pytest.raises(ToolFailed) as refusal:
            await self.do(action, number, **arguments)
        return str(refusal.value)

    async def row(self, number: int) -> Process:
        return await self.database.read(lambda tx: processes.get_process(tx, number))

    async def heard(self) -> list[str]:
        """Return the notices of the session, in order."""
        items = await self.database.read(lambda tx: inbox.list_ready(tx, self.use.session_id))
        return [text_of(item.parts) for item in items]

    async def shows(self, number: int, text: str) -> None:
        """Wait until the output contains a text."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while text not in await self.do("log", number):  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(0.01)

    async def ends(self, number: int) -> Process:
        """Let the watcher look until it has recorded the end."""
        watcher = self.watcher()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await self.row(number)).state == "running":
                await watcher.look()
                await asyncio.sleep(0.01)
        return await self.row(number)


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """Kill all processes of a test at its end."""
    yield
    for path in tmp_path.glob("**/processes/*/"):
        with suppress(SupervisorGone):
            Folder(path).ask(protocol.KILL)


@pytest.fixture
async def place(store: Database, tmp_path: Path) -> Place:
    return await Place(store, tmp_path).open()


@asynccontextmanager
async def watching(watcher: ProcessWatcher) -> AsyncIterator[None]:
    """Run a watcher for the length of a block."""

    async def look() -> None:
        while True:
            await watcher.run_once()
            await asyncio.sleep(0.01)

    task = asyncio.create_task(look())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


# ------------------------------------------------------------------------------------------ through the gateway


async def test_an_agent_starts_a_process_and_gets_one_turn_when_it_ends(
    store: Database, platform: FakePlatform, tmp_path: Path
) -> None:
    registry = Registry(store, tmp_path / "processes", clock=SystemClock(), ids=Ids(), limits=QUICK)
    terminal = Terminal(
        Workspaces(default=tmp_path), environment=ENVIRONMENT, profile="main", background=registry
    )
    command = "echo building; until test -e go; do sleep 0.02; done; echo $KERYX_SESSION_ID; exit 2"

    def play(asked: Asked) -> Reply:
        told = [str(message["content"]) for message in asked.messages if message["role"] == "tool"]
        if "exited with code 2" in str(asked.messages):
            return Reply(text="It failed.")
        if told:
            return Reply(text=f"Told: {told[-1]}")
        return Reply(calls=[Call(name="terminal", arguments={"command": command, "background": True})])

    watchers = [ProcessWatcher(store, registry, clock=SystemClock()) for _ in range(2)]
    async with (
        ModelServer(play) as server,
        running(
            store,
            platform,
            agent_on(server),
            tools=[terminal, ProcessTool(store, registry)],
            settings=EVERYTHING,
        ) as gateway,
        watching(watchers[0]),
        watching(watchers[1]),
    ):
        platform.say("Build it.")
        await until(lambda: len(platform.shown) == 1 and not gateway.turns_running)
        assert (
            "May I run this command in the background, with input from the agent" in platform.said_to("1")[0]
        )
        platform.say("/approve")
        await until(lambda: any("Process 1 runs in the background" in each for each in platform.said_to("1")))
        (tmp_path / "go").touch()
        await until(lambda: "It failed." in platform.said_to("1") and not gateway.turns_running)
    process = await store.read(lambda tx: processes.get_process(tx, 1))
    assert (process.state, process.exit_code) == ("exited", 2)
    assert process.pid is not None
    told = [text for text in platform.said_to("1") if text == "It failed."]
    assert told == ["It failed."], "two watchers saw it, and the session hears it once"
    output = await registry.read(process, start=0, bytes_max=1_000)
    assert output.data.decode() == f"building\n{process.session_id}\n"


async def test_every_open_system_can_start_and_watch_processes(tmp_path: Path) -> None:
    configuration = load_config({"KERYX_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}, tmp_path)
    async with open_system(configuration) as system:
        place = await Place(system.runtime.database, configuration.data_dir).open()
        terminal = system.toolbox.find("terminal")
        assert terminal is not None
        given: dict[str, JsonValue] = {"command": "echo $KERYX_PROFILE; exit 6", "background": True}
        await terminal.run(replace(place.use, arguments=given))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (heard := await place.heard()):  # noqa: ASYNC110 - the watcher is not ours
                await asyncio.sleep(0.01)
        assert heard[0].endswith('exited with code 6. The end of its output: "main\\n"')
        tool = system.toolbox.find("process")
        assert tool is not None
        assert [tool.offer.effect_of({"action": each}) for each in ("poll", "kill")] == ["pure", "once"]
        assert tool.offer.effect_of("poll") == "once"


# ------------------------------------------------------------------------------------------ by themselves


async def test_a_process_is_polled_written_to_closed_and_waited_for(place: Place) -> None:
    number = await place.start("read x; echo got $x; cat; echo; seq 1 3; exit 3")
    assert (await place.do("poll", number)).endswith("It wrote nothing so far.")
    assert await place.do("submit", number, text="tea") == f"4 bytes were written to process {number}."
    await place.shows(number, "got tea")
    assert await place.do("write", number, text="mi") == f"2 bytes were written to process {number}."
    assert await place.do("close", number) == f"The input of process {number} is closed."
    waited = await place.do("wait", number, seconds=20)
    assert (
        "exited with code 3 less than a minute ago, 17 bytes of output. The end of it:\ngot tea\n" in waited
    )
    assert await place.do("log", number) == "Bytes 0 to 17 of 17.\ngot tea\nmi\n1\n2\n3\n"
    assert await place.do("log", number, lines=2) == "Bytes 13 to 17 of 17.\n2\n3\n"
    assert await place.do("log", number, offset=0, lines=1) == "Bytes 0 to 8 of 17.\ngot tea\n"
    assert await place.do("log", number, offset=8, lines=1) == "Bytes 8 to 11 of 17.\nmi\n"
    assert "has ended (exited)" in await place.refused("write", number, text="x")
    [told] = await place.heard()
    assert "exited with code 3" in told


async def test_input_that_cannot_be_written_is_refused_with_a_reason(place: Place) -> None:
    number = await place.start("exec cat")
    assert (await place.refused("write", number)).startswith("Give 'text'")
    assert "give at most 100000" in await place.refused("write", number, text="x" * 100_001)
    assert await place.do("close", number)
    assert "exited with code 0" in await place.do("wait", number, seconds=20)
    process = replace_state(await place.row(number))
    with pytest.raises(ToolFailed, match="It has ended"):
        await place.registry.write(process, b"x")


def replace_state(process: Process) -> Process:
    """Return a process as it was before its end."""
    return process._replace(state="running", ended_at=None)


async def test_a_terminal_s_control_codes_are_not_shown(place: Place) -> None:
    number = await place.start("printf '\\033[31mred\\033[0m\\n'; read x; echo got $x", has_pty=True)
    await place.shows(number, "red\n")
    await place.do("submit", number, text="tea")
    assert (await place.do("wait", number, seconds=20)).endswith("The end of it:\nred\ntea\ngot tea\n")
    number = await place.start("cat", has_pty=True)
    assert await place.do("close", number) == f"Process {number} was told that its input ends."
    assert "exited with code 0" in await place.do("wait", number, seconds=20)


async def test_a_killed_process_is_recorded_as_killed_without_a_notice(place: Place) -> None:
    number = await place.start("trap '' TERM; sleep 600 & echo pid $$; while :; do wait; done")
    await place.shows(number, "pid ")
    pid = int((await place.do("log", number)).split()[-1])
    assert "killed less than a minute ago" in await place.do("kill", number)
    assert not is_alive(pid)
    await place.watcher().look()
    assert await place.heard() == []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_output_over_the_limit_names_the_place_from_which_it_is_kept(place: Place) -> None:
    number = await place.start("seq 1 50000; echo é; exit 0")
    await place.ends(number)
    log = await place.do("log", number, offset=0, lines=1)
    assert log.startswith(
        "Bytes 200000 to 200004 of 288897. The output before byte 200000 is no longer kept."
    )
    assert (await place.do("log", number, offset=288_895)).endswith(
        "of 288897. The output before byte 200000 is no longer kept.\n\n"
    )
    assert (await place.row(number)).output_bytes == 288_897


STARTING = """
import asyncio, sys
from pathlib import Path
from keryx.clock import SystemClock
from keryx.core.processes.rules import NoticePolicy
from keryx.ids import Ids
from keryx.backends.local.registry import Registry
from keryx.backends.local.supervisor import protocol
from keryx.store.opening import open_database
from keryx.core.processes.backend import BackgroundCommand

async def main(address, data_dir, session_id, person_id, command):
    database, data_dir = open_database(address), Path(data_dir)
    registry = Registry(database, data_dir / "processes", clock=SystemClock(), ids=Ids())
    job = BackgroundCommand(command=command, folder=data_dir, environment={}, has_pty=False, notice=NoticePolicy())
    print(await registry.start(job, session_id=session_id, person_id=int(person_id)), flush=True)
    await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


def start_elsewhere(*given: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", STARTING, *given],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


async def test_a_process_survives_the_kill_of_its_starter_with_all_its_output(
    store_address: str, tmp_path: Path
) -> None:
    """The path of the data folder is longer than a socket's path may be."""
    data_dir = tmp_path / ("deep" * 40)
    data_dir.mkdir()
    store = open_database(store_address)
    place = await Place(store, data_dir).open()
    command = "echo before; read x; echo after $x; exit 5"
    given = (store_address, str(data_dir), place.use.session_id, str(place.use.person_id), command)
    with start_elsewhere(*given) as starter:
        assert starter.stdout is not None
        number = int(await asyncio.to_thread(starter.stdout.readline))
        os.killpg(starter.pid, signal.SIGKILL)
    await place.watcher().look()
    row = await place.row(number)
    assert row.pid is not None
    assert (row.state, is_alive(row.pid)) == ("running", True)
    await place.do("submit", number, text="that")
    process = await place.ends(number)
    assert (process.state, process.exit_code) == ("exited", 5)
    assert (await place.do("log", number)).endswith("\nbefore\nafter that\n")
    [told] = await place.heard()
    assert "exited with code 5" in told
    await store.close()


async def test_a_process_whose_supervisor_died_is_lost(place: Place) -> None:
    number = await place.start("echo pid $$; exec sleep 600")
    await place.shows(number, "pid ")
    pid = (await place.row(number)).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    process = await place.ends(number)
    os.kill(int((await place.do("log", number)).split()[-1]), signal.SIGKILL)
    assert (process.state, process.exit_code, process.output_bytes > 1) == ("lost", None, True)
    [told] = await place.heard()
    assert "was lost" in told
    with pytest.raises(ToolFailed, match="It has ended"):
        await place.registry.write(replace_state(process), b"x")
    await place.registry.kill(replace_state(process))
    assert (await place.row(number)).state == "lost"


@pytest.mark.parametrize("crash_at", [1, 2, 3, 4])
async def test_a_starter_that_crashes_leaves_no_unknown_process(place: Place, crash_at: int) -> None:
    crashing = CrashingStore(place.database)
    crashing.crash_at(crash_at)
    theirs = Place(crashing, place.root.parent)
    theirs.use = place.use
    with pytest.raises(Crash):
        await theirs.start("touch ran")
    watcher = place.watcher()
    rows = await place.database.read(lambda tx: tx.row("processes.find", process_id=1))
    assert (rows is None) == (crash_at == 1), "it is recorded before anything is spawned"
    if crash_at == 1:
        await watcher.look()
        return
    process = await place.ends(1)
    assert process.state == "lost"
    assert (process.pid is None) == (crash_at < 4)
    assert not (place.root.parent / "ran").exists(), "nothing runs before its pid is recorded"


async def test_a_process_during_its_start_does_not_count_as_lost(place: Place) -> None:
    folder = place.registry.folder("f1")
    new = NewProcess(command="make", workspace=None, folder="f1")
    use = place.use
    with folder.made():
        number = await place.database.write(
            lambda tx: record_started(tx, new, session_id=use.session_id, person_id=use.person_id)
        )
        await place.watcher().look()
        assert (await place.row(number)).state == "running"
    await place.watcher().look()
    assert (await place.row(number)).state == "lost"


async def test_an_impossible_start_is_refused(place: Place) -> None:
    place.use = replace(place.use, person_id=99)
    with pytest.raises(ToolFailed, match="There is no session"):
        await place.start("touch ran")
    place.use = replace(place.use, person_id=(await place.open()).use.person_id)
    job = BackgroundCommand(
        command="true", folder=place.root, environment={"a=b": ""}, has_pty=False, notice=NoticePolicy()
    )
    with pytest.raises(ToolFailed, match="could not be started"):
        await place.registry.start(job, session_id=place.use.session_id, person_id=place.use.person_id)
    assert (await place.row(1)).state == "killed"
    assert await place.heard() == []


async def test_a_watched_text_is_reported_once_by_several_watchers(place: Place) -> None:
    notice = NoticePolicy(on_exit=False, patterns=("ready", "never"))
    number = await place.start(
        "echo get; printf 'all re'; read x; echo ady; echo ready; read x", notice=notice
    )
    watcher = place.watcher()
    await place.shows(number, "all re")
    await watcher.look()
    assert await place.heard() == []
    await place.do("submit", number, text="")
    await place.shows(number, "ready\nready")
    for each in (watcher, watcher, place.watcher()):
        assert await each.look()
    [told] = await place.heard()
    assert told.endswith('wrote a line with "ready". The end of its output: "all ready"')
    await place.do("close", number)
    await place.ends(number)
    assert len(await place.heard()) == 1


# ------------------------------------------------------------------------------------------ as time passes


@pytest.fixture
async def timed(database: Database, clock: FakeClock, tmp_path: Path) -> Place:
    return await Place(database, tmp_path).open()


async def test_progress_is_reported_at_the_requested_interval(timed: Place, clock: FakeClock) -> None:
    number = await timed.start("echo on; read x", notice=NoticePolicy(on_exit=False, every_minutes=5))
    await timed.shows(number, "on")

    def watcher() -> ProcessWatcher:
        return ProcessWatcher(timed.database, timed.registry, clock=clock)

    first = watcher()
    await first.look()
    assert await timed.heard() == []
    clock.advance(11 * MINUTE)
    for each in (first, first, watcher()):
        await each.look()
    [told] = await timed.heard()
    assert told.endswith('is still running. The end of its output: "on\\n"')
    clock.advance(4 * MINUTE)
    await first.look()
    assert len(await timed.heard()) == 2
    await timed.do("kill", number)


async def test_a_folder_is_removed_half_an_hour_after_the_end_and_the_row_stays(
    timed: Place, clock: FakeClock
) -> None:
    number = await timed.start("echo tea")
    await timed.ends(number)
    watcher = ProcessWatcher(timed.database, timed.registry, clock=clock)
    clock.advance(30 * MINUTE - 1)
    while await watcher.look():  # noqa: ASYNC110 - its supervisor has written the end, and is about to go
        await asyncio.sleep(0.01)
    assert (await timed.do("log", number)).endswith("tea\n")
    clock.advance(1)
    await watcher.look()
    assert timed.registry.names() == []
    assert (await timed.refused("log", number)).startswith("Its output is gone")
    assert "exited with code 0" in await timed.do("poll", number)
    await watcher.look()


async def test_a_folder_without_a_row_is_removed_too(timed: Place, clock: FakeClock) -> None:
    folder = timed.registry.folder("stray")
    with folder.made():
        pass
    (timed.root / "note.txt").touch()
    watcher = ProcessWatcher(timed.database, timed.registry, clock=clock)
    at = clock.now() / 1_000_000
    for age_seconds, is_there in ((60, True), (HOUR // 1_000_000, False)):
        os.utime(folder.path, (at - age_seconds, at - age_seconds))
        await watcher.look()
        assert folder.path.exists() == is_there
