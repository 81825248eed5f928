"""A test that leaves something running fails under its own name, and no other test does."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.architecture.source import ROOT

CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"
"""
LEAKY = """
import asyncio
import os
import socket
import subprocess
import sys
import threading

import pytest

kept = []

def test_process():
    kept.append(subprocess.Popen(["sleep", "601"]))

def test_after_process():
    pass

def test_detached():
    daemon = "sleep 602 >/dev/null 2>&1 </dev/null & exit 0"
    subprocess.run(["/bin/sh", "-c", daemon], env={}, start_new_session=True, check=True)

def test_zombie():
    os.posix_spawn(sys.executable, [sys.executable, "--version"], {})

@pytest.fixture
def careless():
    yield
    kept.append(subprocess.Popen(["sleep", "603"]))

def test_fixture(careless):
    pass

def test_thread():
    threading.Thread(target=threading.Event().wait, name="idler", daemon=True).start()

def test_after_thread():
    pass

async def test_task():
    async def doze():
        await asyncio.sleep(600)

    kept.append(asyncio.create_task(doze()))

async def test_after_task():
    pass

async def test_socket():
    ours, theirs = socket.socketpair()
    kept.append(await asyncio.open_connection(sock=ours))
    theirs.close()

def test_socket_in_a_loop_of_its_own():
    async def leave():
        ours, theirs = socket.socketpair()
        kept.extend([await asyncio.open_connection(sock=ours), theirs])

    asyncio.run(leave())

async def test_subprocess():
    kept.append(await asyncio.create_subprocess_exec("sleep", "604", stdin=subprocess.PIPE))

async def test_server(tmp_path):
    await asyncio.start_unix_server(print, tmp_path / "socket")

@pytest.fixture
def broken():
    yield
    kept.append(subprocess.Popen(["sleep", "605"]))
    raise RuntimeError("a broken teardown")

def test_broken_teardown(broken):
    pass

def test_last():
    pass
"""
CLEAN = """
import asyncio
import socket
import subprocess
import threading

import pytest

@pytest.fixture(scope="module")
def shared():
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    process = subprocess.Popen(["sleep", "606"])
    yield process
    process.kill()
    process.wait()
    ended.set()
    thread.join()

def test_before():
    pass

def test_first_of_the_module(shared):
    assert shared.poll() is None

async def test_second_of_the_module(shared):
    assert shared.poll() is None

@pytest.fixture
async def connection():
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    yield writer
    writer.close()
    theirs.close()

async def test_closed_at_the_last_moment(connection):
    connection.write(b"x")

async def test_ends_by_itself():
    threading.Thread(target=threading.Event().wait, args=(0.2,)).start()
    process = await asyncio.create_subprocess_exec("sleep", "0.2")
    asyncio.create_task(process.wait())

def test_detached_one_ends_by_itself():
    subprocess.run("sleep 0.2 &", shell=True, check=True, stdout=subprocess.DEVNULL)
"""

Fates = dict[str, str]
"""What each test failed with, which is nothing for those that passed."""


def fates(folder: Path, test: str, *arguments: str, grace_seconds: float) -> Fates:
    """Run a module of tests under the guard."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_planted.py").write_text(test)
    report = folder / "report.xml"
    options = [f"leak_grace_seconds={grace_seconds}", "anyio_mode=auto", "junit_logging=all"]
    plugins = ["tests.leaks", "tests.workers", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *arguments]
    command += [f"-o{option}" for option in options] + [f"-p{plugin}" for plugin in plugins]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    # Not captured by a pipe, which a process that is left would hold open.
    with (folder / "output").open("w+") as output:
        subprocess.run(command, cwd=folder, env=environ, stdout=output, stderr=output, check=False)
        output.seek(0)
        assert report.exists(), output.read()
    found: Fates = {}
    for case in ET.parse(report).iter("testcase"):
        wrongs = [wrong.text or "" for kind in ("failure", "error") for wrong in case.iter(kind)]
        found[str(case.get("name"))] = "\n".join(wrongs)
    return found


@pytest.fixture(scope="module", params=[(), ("--workers=2",)], ids=["alone", "in workers"])
def leaky(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fates:
    arguments: tuple[str, ...] = request.param
    return fates(tmp_path_factory.mktemp("leaky"), LEAKY, *arguments, grace_seconds=0.1)


def test_each_leak_is_told_by_the_test_that_left_it(leaky: Fates) -> None:
    told = {
        "test_process": ["process ", "sleep 601"],
        "test_detached": ["process ", "sleep 602"],
        "test_zombie": ["process ", "has ended, and was not waited for"],
        "test_fixture": ["process ", "sleep 603"],
        "test_thread": ["thread idler"],
        "test_task": ["task Task-", "test_task.<locals>.doze, at ", "test_planted.py:"],
        "test_socket": ["transport <_SelectorSocketTransport", "1 file descriptors", " -> socket:["],
        "test_socket_in_a_loop_of_its_own": ["transport <_SelectorSocketTransport"],
        "test_subprocess": ["sleep 604", "transport <_UnixSubprocessTransport", "-> "],
        "test_server": ["transport <Server"],
        "test_broken_teardown": ["a broken teardown", "sleep 605"],
    }
    assert {name for name, fate in leaky.items() if fate} == set(told)
    for name, words in told.items():
        assert "This test left behind:" in leaky[name]
        for word in words:
            assert word in leaky[name], name


def test_what_is_left_is_ended_before_the_next_test(leaky: Fates) -> None:
    left = re.findall(r"process (\d+): sleep", "\n".join(leaky.values()))
    assert len(left) == 5
    for pid in left:
        with suppress(FileNotFoundError):
            assert b"sleep" not in Path("/proc", pid, "cmdline").read_bytes()


def test_what_a_wider_fixture_starts_may_stay_and_what_ends_soon_is_waited_for(tmp_path: Path) -> None:
    found = fates(tmp_path, CLEAN, grace_seconds=60)
    assert len(found) == 6
    assert not any(found.values()), found
