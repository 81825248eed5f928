"""A database that tests share is empty and has its original schema for each test."""

from collections.abc import Iterator

import psycopg
import pytest

from keryx.testing.postgres import PrivateServer
from tests.reused import ReusedDatabase

ADD = "INSERT INTO people (name, role, created_at) VALUES ('ana', 'owner', 1) RETURNING id"


@pytest.fixture
def reused(postgres_server: PrivateServer) -> Iterator[ReusedDatabase]:
    database = ReusedDatabase(postgres_server)
    yield database
    database.drop()


def add_person(url: str) -> list[tuple[int]]:
    """Add a person to a database, and return all people."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(ADD)
        return connection.execute("SELECT id FROM people").fetchall()


def test_a_reused_database_is_empty_and_its_sequences_restart(reused: ReusedDatabase) -> None:
    url = reused.take()
    assert add_person(url) == [(1,)]
    with psycopg.connect(url, autocommit=True) as left:
        reused.give_back()
        assert reused.take() == url
        assert add_person(url) == [(1,)]
        with pytest.raises(psycopg.OperationalError):
            left.execute("SELECT 1")  # the old connection was closed


@pytest.mark.parametrize("change", ["DROP TABLE malformed", "DELETE FROM keryx_schema WHERE number = 1"])
def test_a_database_with_a_changed_schema_is_created_anew(reused: ReusedDatabase, change: str) -> None:
    url = reused.take()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(change.encode())
    reused.give_back()
    assert reused.take() != url
    assert add_person(reused.take()) == [(1,)]
