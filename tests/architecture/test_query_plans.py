"""The queries of the loops never read a whole table, so they cost the same after any history."""

import apsw
import pytest

from keryx.store.migrate import migrate_sqlite
from keryx.store.statements import load

POLLED = (
    "approvals.list_expired",
    "inbox.list_commands",
    "outbox.list_due",
    "outbox.list_stuck",
    "expiring_sessions.list_unflushed",
    "expiring_sessions.list_unflushed_again",
    "pending_work.list_ready",
    "turns.list_orphans",
    "turns.list_speaking",
    "turns.list_stopping",
)
FORGETTING = {
    # Without the index's own condition, or in an order that the table has and the index has not.
    "SELECT id FROM turns WHERE state = 'running' AND holder = :holder",
    "SELECT id FROM inbox WHERE state = 'ready' AND kind = 'command' ORDER BY id LIMIT :limit",
}


@pytest.fixture(scope="module")
def empty_store() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    migrate_sqlite(connection, now=0)
    return connection


def full_scans(connection: apsw.Connection, sql: str) -> list[str]:
    """Return the steps of a plan that go through a whole table, or through an index of all its rows."""
    partial = {
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql LIKE '%) WHERE %'"
        )
    }
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", _Anything())]
    scans = [str(step) for step in steps if str(step).startswith("SCAN")]
    return [step for step in scans if step.rpartition("INDEX ")[2] not in partial]


class _Anything(dict[str, None]):
    """Gives every parameter a value; a plan does not depend on it."""

    def __missing__(self, name: str) -> None:
        return None


@pytest.mark.parametrize("name", POLLED)
def test_no_whole_table_is_read_by(name: str, empty_store: apsw.Connection) -> None:
    assert full_scans(empty_store, load("sqlite")[name].sql) == []


@pytest.mark.parametrize("sql", sorted(FORGETTING))
def test_a_statement_that_forgets_the_index_is_found(sql: str, empty_store: apsw.Connection) -> None:
    assert len(full_scans(empty_store, sql)) == 1
