"""Fixtures of the conformance tests of search."""

import pytest

from keryx.ids import Ids
from keryx.store.database import Database
from tests.conformance.talk import Talk


@pytest.fixture
async def talk(database: Database, ids: Ids) -> Talk:
    return await Talk.begin(database, ids)
