"""Fail the test that leaves a process, a thread, a task or an asyncio transport behind: a pytest plugin.

A test is checked after the teardown of its fixtures. Whatever the test started must be gone by then, or within a grace
period, because it would disturb a later test. Only a fixture of a wider scope may leave something running.

A process is recognized by a resource limit that nothing else uses. All descendants inherit the limit, even a process
that has another parent, a new session and an empty environment. Processes are found only where there is a ``/proc``.
The open file descriptors are told, but are no reason to fail. A loop that a test runs by itself, with ``asyncio.run``,
cancels the tasks that it still has: nobody sees those.
"""

import asyncio
import functools
import gc
import os
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

GRACE_SECONDS = 5.0
"""How long a process may take to end after it was killed, on a busy machine."""
SOON_SECONDS, LOOK_SECONDS = 0.0005, 0.01
MARK = 10**15
"""A limit of 31 years of real-time processing: no process notices it. The id of the test run's process is added."""
HAS_PROC = sys.platform == "linux"
WATCHES_TASKS = "tasks_are_watched"

_opened: WeakSet[Any] = WeakSet()
"""The transports and servers that were made and not yet checked."""


def _record(kind: type) -> None:
    """Note every object of a class that is made from now on."""
    original = kind.__init__  # type: ignore[misc]

    @functools.wraps(original)
    def recorded(made: Any, *args: Any, **kwargs: Any) -> None:
        original(made, *args, **kwargs)
        _opened.add(made)

    kind.__init__ = recorded  # type: ignore[misc]


_record(asyncio.BaseTransport)
_record(asyncio.Server)


def is_open(made: Any) -> bool:
    """Say whether a transport or a server still holds what it was made for.

    A transport that was told to close holds its socket or pipe until its loop has run once more.
    """
    if isinstance(made, asyncio.Server):
        return bool(made.sockets)
    sock, pipe = made.get_extra_info("socket"), made.get_extra_info("pipe")
    if sock is not None:
        return bool(sock.fileno() != -1)
    return not (made.is_closing() if pipe is None else pipe.closed)


class Watch:
    """What one process of the test run knew at the end of the last test."""

    def __init__(self, grace_seconds: float) -> None:
        self.pid = os.getpid()
        self.grace_seconds = grace_seconds
        self.tasks: list[str] = []
        """The tasks that the present test left, as its loop saw them before it was closed."""
        self.held: list[Any] = []
        """What was open by then; it is kept until it has been told."""
        self._mark = MARK + self.pid
        self._limits = resource.getrlimit(resource.RLIMIT_RTTIME) if HAS_PROC else None
        self.mark()
        self._others = {str(self.pid)}
        """The processes that were looked at, and which are not the present test's."""
        self._processes()
        self._accept()

    def mark(self) -> None:
        """Let what is started from now on be the present test's."""
        if self._limits:
            resource.setrlimit(resource.RLIMIT_RTTIME, (self._mark, self._limits[1]))

    def unmark(self) -> None:
        """Let what is started from now on be allowed to outlive the present test."""
        if self._limits:
            resource.setrlimit(resource.RLIMIT_RTTIME, self._limits)

    def accept_threads(self, threads: set[threading.Thread]) -> None:
        """Allow these threads to outlive the present test."""
        self._threads |= threads

    def leaks(self) -> str:
        """Return what the test left behind, in words; nothing if all is well. What can be ended is ended."""
        pause = SOON_SECONDS
        deadline = time.monotonic() + self.grace_seconds
        while (has_leaks := self._has_leaks()) and time.monotonic() < deadline:
            time.sleep(pause)
            pause = LOOK_SECONDS
        told = ""
        if has_leaks or self.tasks:
            told = "\n".join(["This test left behind:", *self._named(), *self._new_descriptors()])
            self._end_all()
        self._accept()
        return told

    def _has_leaks(self) -> bool:
        return bool(self._processes() or self._new_threads() or open_transports())

    def _processes(self) -> list[str]:
        """Return the ids of the present test's processes that still exist."""
        if not HAS_PROC:
            return []
        there = {name for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 - after every test: quick
        self._others &= there
        ours = [pid for pid in there - self._others if self._is_of_the_test(pid)]
        self._others |= there.difference(ours)
        return ours

    def _is_of_the_test(self, pid: str) -> bool:
        try:
            if f" {self._mark} " not in Path("/proc", pid, "limits").read_text():
                return False
            # The name of the program stands in parentheses and may hold anything.
            state, parent, *_ = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            return False
        # If the process has ended and its parent is gone, only the machine's init is late.
        return state not in "ZX" or parent == str(self.pid)

    def _new_threads(self) -> set[threading.Thread]:
        return set(threading.enumerate()) - self._threads

    def _named(self) -> Iterator[str]:
        yield from (f"  process {pid}: {_command_of(pid)}" for pid in self._processes())
        yield from (f"  thread {thread.name}: {thread!r}" for thread in self._new_threads())
        yield from (f"  task {task}" for task in self.tasks)
        yield from (f"  transport {transport!r}" for transport in open_transports())

    def _new_descriptors(self) -> Iterator[str]:
        new = sorted(_descriptors() - self._descriptors)
        yield f"{len(new)} file descriptors were opened by then and are still open:"
        yield from (f"  {number} -> {target}" for number, target in new)

    def _end_all(self) -> None:
        """Let nothing of it disturb the tests that follow."""
        for pid in self._processes():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), signal.SIGKILL)
            self._others.add(pid)
        for transport in open_transports():
            with suppress(RuntimeError):  # its loop may be closed
                transport.close()
        self.held = []
        _opened.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they have been told
            gc.collect()

    def _accept(self) -> None:
        """Begin the next test with what there is now."""
        self.tasks, self.held = [], []
        self._threads = set(threading.enumerate())
        self._descriptors = _descriptors()
        _opened.clear()


_watches: list[Watch] = []
"""The last one is this process's; a worker is forked with that of the process it comes from."""


def watch() -> Watch:
    """Return the watch of this process, which has one as soon as its first test begins."""
    assert _watches[-1].pid == os.getpid()
    return _watches[-1]


def open_transports() -> list[Any]:
    """Return the transports and servers that the present test made and that are open."""
    return [transport for transport in _opened if is_open(transport)]


@contextmanager
def outliving_the_test() -> Iterator[None]:
    """Let what is started in the block outlive the test: it belongs to a fixture of a wider scope."""
    if not _watches or _watches[-1].pid != os.getpid():
        yield
        return
    threads, opened = set(threading.enumerate()), set(_opened)
    watch().unmark()
    try:
        yield
    finally:
        watch().mark()
        watch().accept_threads(set(threading.enumerate()) - threads)
        _opened.intersection_update(opened)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the grace period be set, by the tests of this plugin."""
    parser.addini(
        "leak_grace_seconds", default=str(GRACE_SECONDS), help="how long what is left may take to end"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set up the watch of the tasks before every other fixture of a test that has a loop, and tear it down last."""
    for item in items:
        names = item.fixturenames if isinstance(item, pytest.Function) else []
        if "anyio_backend" in names and WATCHES_TASKS not in names:
            names.insert(0, WATCHES_TASKS)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Begin to watch with the first test of a process."""
    if not _watches or _watches[-1].pid != os.getpid():
        _watches.append(Watch(float(item.config.getini("leak_grace_seconds"))))
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """Allow what a fixture of a wider scope starts."""
    if fixturedef.scope == "function":
        return (yield)
    with outliving_the_test():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Fail the test that has left something behind."""
    try:
        result = yield
    except (Exception, pytest.fail.Exception) as error:
        if told := watch().leaks():
            error.add_note(told)
        raise
    if told := watch().leaks():
        pytest.fail(told, pytrace=False)
    return result


@pytest.fixture(name=WATCHES_TASKS)
async def _tasks_are_watched() -> AsyncIterator[None]:
    """Note which tasks the test leaves in its loop; closing the loop would cancel them unseen."""
    before = _tasks()
    yield
    deadline = time.monotonic() + watch().grace_seconds
    pause = SOON_SECONDS
    while (left := _tasks() - before) or open_transports():
        if time.monotonic() >= deadline:
            break
        await asyncio.sleep(pause)
        pause = LOOK_SECONDS
    watch().tasks = [_task_in_words(task) for task in left]
    watch().held = open_transports()


def _tasks() -> set[asyncio.Task[Any]]:
    """Return the tasks that are not done, without those in which anyio's plugin runs a part of the test."""
    return {task for task in asyncio.all_tasks() if not _name_of(task).startswith("TestRunner.")}


def _name_of(task: asyncio.Task[Any]) -> str:
    coroutine = task.get_coro()
    return getattr(coroutine, "__qualname__", None) or repr(coroutine)


def _task_in_words(task: asyncio.Task[Any]) -> str:
    frames: Sequence[Any] = task.get_stack(limit=1)
    at = f", at {frames[-1].f_code.co_filename}:{frames[-1].f_lineno}" if frames else ""
    return f"{task.get_name()} of {_name_of(task)}{at}"


def _command_of(pid: str) -> str:
    """Return the command line of a process; its name if it has ended and nobody has waited for it."""
    try:
        command = Path("/proc", pid, "cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ")
        name = Path("/proc", pid, "comm").read_text().strip()
    except OSError:
        return "has ended by now"
    return command.decode(errors="replace") or f"{name} (has ended, and was not waited for)"


def _descriptors() -> set[tuple[int, str]]:
    """Return this process's open file descriptors, and what each is of."""
    found = set()
    for name in os.listdir("/proc/self/fd") if HAS_PROC else ():  # noqa: PTH208 - after every test: quick
        with suppress(OSError):  # that of the listing itself
            found.add((int(name), os.readlink(f"/proc/self/fd/{name}")))  # noqa: PTH115 - as above
    return found
