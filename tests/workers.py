"""Tests in several processes: all is collected once, then forked, and workers take handfuls until none is left.

A plug-in with an option, ``--workers``. Workers that are started anew, as pytest-xdist's are, each load all again
and put the marks of coverage into it: half a minute of processor time apiece. Whoever is forked has it all. A test has
one fate even if its worker dies: what nobody told of has failed.
"""

import gc
import os
import struct
from collections.abc import Iterator, Sequence
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn

import pytest
from _pytest import runner
from _pytest.capture import CaptureManager

HANDFUL = 16
"""Tests of one module that are taken at once, so that what they share is made seldom."""
NUMBER = struct.Struct("i")


class Hooks:
    """What other plug-ins may say and hear."""

    @pytest.hookspec
    def pytest_worker_tells(self) -> Any:
        """Return what a worker hands over when it has ended."""

    @pytest.hookspec
    def pytest_worker_told(self, told: list[Any]) -> None:
        """Take what the plug-ins of one worker handed over."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say how many."""
    parser.addoption("--workers", type=int, default=0, help="run the tests in so many processes")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let other plug-ins take part."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_configure(config: pytest.Config) -> None:
    """Take over where workers are asked for."""
    if config.getoption("--workers"):
        config.pluginmanager.register(Foreman(config, config.getoption("--workers")))


def handfuls(items: Sequence[pytest.Item]) -> Iterator[list[pytest.Item]]:
    """Yield tests that stay together: some of one module, or a single one that takes long."""
    for _, of_module in groupby(
        items, key=lambda item: (item.path, item.get_closest_marker("long") is not None)
    ):
        members = list(of_module)
        size = 1 if members[0].get_closest_marker("long") else HANDFUL
        for first in range(0, len(members), size):
            yield members[first : first + size]


class Foreman:
    """Starts the workers and passes on what they tell."""

    def __init__(self, config: pytest.Config, workers: int) -> None:
        self._config = config
        self._workers = workers
        self._untold: dict[str, pytest.Item] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run the tests that were collected."""
        if self._config.option.collectonly or session.testsfailed:
            return None
        self._untold = {item.nodeid: item for item in session.items}
        shares = list(handfuls(session.items))
        numbers, numbers_in = os.pipe()
        os.write(numbers_in, b"".join(NUMBER.pack(number) for number in range(len(shares))))
        os.close(numbers_in)
        gc.freeze()  # what is there already is not looked at again, so that its memory stays shared
        workers = [self._start(session, shares, numbers) for _ in range(self._workers)]
        while workers:
            for worker in wait(workers):
                assert isinstance(worker, Connection)
                if not self._hear(worker):
                    workers.remove(worker)
            if session.shouldfail:
                _take_all(numbers)  # workers end when nothing is left
        while True:
            try:
                os.wait()
            except ChildProcessError:
                break
        for item in self._untold.values() if not session.shouldfail else ():
            self._report(pytest.TestReport.from_item_and_call(item, _died()))
        return True

    def _start(
        self, session: pytest.Session, shares: Sequence[list[pytest.Item]], numbers: int
    ) -> Connection:
        ours, theirs = Pipe(duplex=False)
        if os.fork() == 0:
            ours.close()
            work(session, shares, numbers, theirs)
        theirs.close()
        return ours

    def _hear(self, worker: Connection) -> bool:
        """Pass on what a worker says; False when it has ended."""
        try:
            kind, told = worker.recv()
        except EOFError:
            return False
        if kind == "end":
            self._config.hook.pytest_worker_told(told=told)
        else:
            self._report(self._config.hook.pytest_report_from_serializable(config=self._config, data=told))
        return True

    def _report(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self._untold.pop(report.nodeid, None)
        self._config.hook.pytest_runtest_logreport(report=report)


class Teller:
    """Hands the reports of a worker on."""

    def __init__(self, config: pytest.Config, to: Connection) -> None:
        self._config = config
        self._to = to

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell of a part of a test as soon as it is over."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._to.send(("report", data))


def work(
    session: pytest.Session, shares: Sequence[list[pytest.Item]], numbers: int, to: Connection
) -> NoReturn:
    """Be a worker: run handfuls until none is left, and end without going back to whoever forked."""
    config = session.config
    try:
        _begin_anew(config)
        config.pluginmanager.register(Teller(config, to))
        waiting = _take(shares, numbers)
        while waiting:
            item, *waiting = waiting
            waiting = waiting or _take(shares, numbers)
            config.hook.pytest_runtest_protocol(item=item, nextitem=waiting[0] if waiting else None)
        to.send(("end", config.hook.pytest_worker_tells()))
    except KeyboardInterrupt:
        runner.pytest_sessionfinish(session)  # what a test had started ends too
    finally:
        os._exit(0)


def _begin_anew(config: pytest.Config) -> None:
    """Let go of what belongs to the process we come from: the screen, and the file that catches what is printed."""
    config.pluginmanager.unregister(name="terminalreporter")
    capture = config.pluginmanager.getplugin("capturemanager")
    assert isinstance(capture, CaptureManager)
    capture.stop_global_capturing()
    capture.start_global_capturing()


def _take(shares: Sequence[list[pytest.Item]], numbers: int) -> list[pytest.Item]:
    """Return the next handful; nothing when all are taken."""
    number = os.read(numbers, NUMBER.size)
    return shares[NUMBER.unpack(number)[0]] if number else []


def _take_all(numbers: int) -> None:
    while os.read(numbers, 4096):
        pass


def _died() -> pytest.CallInfo[None]:
    def tell() -> None:
        pytest.fail("The process that ran this test ended before it told what became of it.", pytrace=False)

    return pytest.CallInfo.from_call(tell, when="call")
