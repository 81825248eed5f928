"""What every test may ask for.

A test that needs PostgreSQL fails where there is none; it is never skipped, because a skipped half of the promise
looks like a kept one.
"""

import logging
import math
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from keryx.errors import StoreUnavailable
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.store.migrate import migrate_postgres
from keryx.store.opening import open_database
from keryx.testing.clock import FakeClock
from keryx.testing.postgres import PrivateServer

LONG = ("test_torture.py", "test_gateway_crashes.py", "test_broken_gateways.py", "test_kills.py")
UNMEASURED = "test_gateway_crashes.py"
"""Plays whole gateways by the thousand; what it runs, other tests run measured."""
ABOUT_DATABASES = ("test_database.py", "test_an_index_of_another_format_is_thrown_away")
"""Files and tests that are measured on both."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what takes long begin first, and take the coverage of what would be measured twice only once.

    Measuring doubles the time of a test.
    """
    for item in items:
        if item.path.name == UNMEASURED or _is_repeated(item):
            item.add_marker(pytest.mark.no_cover)
    long = [item for item in items if item.path.name in LONG]
    others = [item for item in items if item.path.name not in LONG]
    items[:] = _dealt(long, others, workers=int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _is_repeated(item: pytest.Item) -> bool:
    """Say whether a test runs on PostgreSQL what it runs on SQLite as well."""
    call = getattr(item, "callspec", None)
    on_postgres = call is not None and call.params.get("store_address") == "postgres"
    return on_postgres and not {item.path.name, getattr(item, "originalname", "")} & set(ABOUT_DATABASES)


def _dealt(long: list[pytest.Item], others: list[pytest.Item], *, workers: int) -> list[pytest.Item]:
    """Return the tests so that each worker, which begins with its share of the list, begins with what is long."""
    share = math.ceil(len(others) / workers)
    return [
        item
        for worker in range(workers)
        for item in (*long[worker::workers], *others[worker * share : (worker + 1) * share])
    ]


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
def postgres_template(postgres_server: PrivateServer) -> str:
    """The address of a database with the current schema and no rows, to be copied and never connected to."""
    url = postgres_server.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        migrate_postgres(connection, now=0)
    return url


@pytest.fixture
def postgres_url(postgres_server: PrivateServer, postgres_template: str) -> Iterator[str]:
    """The address of a database of this test's own, with the current schema."""
    url = postgres_server.create_database(template=postgres_template)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ids() -> Ids:
    """Ids that are the same in every run."""
    return Ids(seed=1)


@pytest.fixture(params=["sqlite", "postgres"])
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store of each kind in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "keryx.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
async def database(store_address: str, clock: FakeClock) -> AsyncIterator[Database]:
    """An open store of each kind in turn, on a clock that stands still."""
    database = open_database(store_address, clock=clock)
    yield database
    await database.close()
