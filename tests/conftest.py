"""What every test may ask for.

A test that needs PostgreSQL fails where there is none; it is never skipped, because a skipped half of the promise
looks like a kept one.
"""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from keryx.errors import StoreUnavailable
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.testing.clock import FakeClock
from keryx.testing.postgres import PrivateServer
from tests.conformance.stage import CHECKED_LATER
from tests.reused import ReusedDatabase

pytest_plugins = ["tests.leaks"]

settings.register_profile("keryx", deadline=None)  # the machine may do other work as well
settings.load_profile("keryx")

LONG = ("test_torture.py", "test_gateway_crashes.py", "test_broken_gateways.py", "test_kills.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what takes long begin first, each test for itself."""
    for item in items:
        if item.path.name in LONG:
            item.add_marker("long")
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


@pytest.fixture(autouse=True)
def log_as_it_was() -> Iterator[None]:
    """A command that a test runs in this process sets the log up for itself, not for the tests after it."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PrivateServer]:
    """A server for this worker, started when the first test asks for it."""
    try:
        server = PrivateServer().__enter__()
    except StoreUnavailable as error:
        pytest.fail(f"This test needs a PostgreSQL server of its own. {error}", pytrace=False)
    yield server
    server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def reused_database(postgres_server: PrivateServer) -> Iterator[ReusedDatabase]:
    database = ReusedDatabase(postgres_server)
    yield database
    database.drop()


@pytest.fixture
def postgres_url(reused_database: ReusedDatabase) -> Iterator[str]:
    """The address of a database with the current schema and no rows, this test's own until it is over."""
    yield reused_database.take()
    reused_database.give_back()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ids() -> Ids:
    """Ids that are the same in every run."""
    return Ids(seed=1)


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store without rows, to be copied: to make one takes four times as long as to open it."""
    path = tmp_path_factory.mktemp("empty") / "keryx.db"
    asyncio.run(open_database(path).close())
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store of each kind in turn."""
    if request.param == "sqlite":
        empty: Path = request.getfixturevalue("empty_file")
        return str(shutil.copy(empty, tmp_path / "keryx.db"))
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
async def database(
    store_address: str, clock: FakeClock, request: pytest.FixtureRequest
) -> AsyncIterator[Database]:
    """An open store of each kind in turn, on a clock that stands still."""
    database = open_database(store_address, clock=clock)
    yield database
    await database.close()
    if database in CHECKED_LATER:
        reused: ReusedDatabase = request.getfixturevalue("reused_database")
        assert reused.breaches(clock) == []
