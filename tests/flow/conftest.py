"""What the tests of a running gateway may ask for."""

from collections.abc import AsyncIterator

import pytest

from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.testing.platform import FakePlatform
from tests.flow.running import let_in


@pytest.fixture
async def store(store_address: str) -> AsyncIterator[Database]:
    """An open store of each kind in turn, on the machine's own clock."""
    database = open_database(store_address)
    yield database
    await database.close()


@pytest.fixture
async def platform(store: Database) -> FakePlatform:
    """A platform on which Ana, the owner, and Ben, a member, are known."""
    platform = FakePlatform()
    await let_in(store, platform, "ana", "ben")
    return platform
