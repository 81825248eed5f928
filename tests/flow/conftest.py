"""Fixtures for tests of a running gateway."""

from collections.abc import AsyncIterator

import pytest

from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.testing.platform import FakePlatform
from tests.flow.running import let_in


@pytest.fixture
async def store(store_address: str) -> AsyncIterator[Database]:
    """An open store of each kind, on the machine's clock."""
    database = open_database(store_address)
    yield database
    await database.close()


@pytest.fixture
async def platform(store: Database) -> FakePlatform:
    """A platform that knows Ana, the owner, and Ben, a member."""
    platform = FakePlatform()
    await let_in(store, platform, "ana", "ben")
    return platform
