"""A database that tests use in turn is empty for each of them, and as it was made."""

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
    """Add somebody to a database, and return all that are in it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(ADD)
        return connection.execute("SELECT id FROM people").fetchall()


def test_it_comes_back_empty_and_its_numbers_begin_again(reused: ReusedDatabase) -> None:
    url = reused.take()
    assert add_person(url) == [(1,)]
    with psycopg.connect(url, autocommit=True) as left:
        reused.give_back()
        assert reused.take() == url
        assert add_person(url) == [(1,)]
        with pytest.raises(psycopg.OperationalError):
            left.execute("SELECT 1")  # whoever was still there is not any more


@pytest.mark.parametrize("change", ["DROP TABLE malformed", "DELETE FROM keryx_schema WHERE number = 1"])
def test_what_was_changed_in_its_shape_is_made_anew(reused: ReusedDatabase, change: str) -> None:
    url = reused.take()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(change.encode())
    reused.give_back()
    assert reused.take() != url
    assert add_person(reused.take()) == [(1,)]
