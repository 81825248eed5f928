"""What every test may ask for.

A test that needs PostgreSQL fails where there is none; it is never skipped, because a skipped half of the promise
looks like a kept one.
"""

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

LONG = ("test_torture.py", "test_gateway_crashes.py", "test_broken_gateways.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what takes long begin first, so that no worker is left alone with it in the end."""
    items.sort(key=lambda item: item.path.name not in LONG)


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
