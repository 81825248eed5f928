"""A PostgreSQL database that many tests use one after the other: to empty one takes a tenth of making one."""

from typing import Final, LiteralString

import psycopg

from keryx.clock import Clock
from keryx.core.upkeep.views.invariants import Breach, check_invariants
from keryx.store.migrate import migrate_postgres
from keryx.store.postgres_tx import PostgresTx
from keryx.store.statements import load
from keryx.testing.postgres import PrivateServer

_SHAPE: Final[LiteralString] = """SELECT
    (SELECT string_agg(concat_ws(' ', relname, relkind, relnatts), ',' ORDER BY relname)
        FROM pg_class WHERE relnamespace = 'public'::regnamespace),
    (SELECT string_agg(CAST(applied AS TEXT), ',' ORDER BY number) FROM keryx_schema AS applied)"""
_LEFT: Final[LiteralString] = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""


class ReusedDatabase:
    """One database with the current schema, emptied between tests; made anew after a test that changed its shape."""

    def __init__(self, server: PrivateServer) -> None:
        self._server = server
        self._url: str | None = None

    def take(self) -> str:
        """Return the address of a database without rows, which is the caller's until it calls ``give_back``."""
        if self._url is None:
            self._url = self._server.create_database()
            self._connection = psycopg.connect(self._url, autocommit=True, prepare_threshold=1)
            migrate_postgres(self._connection, now=0)
            self._shape = self._connection.execute(_SHAPE).fetchone()
            self._empty = self._emptying()
        return self._url

    def breaches(self, clock: Clock) -> list[Breach]:
        """Return what does not hold in it, by a connection that has all the questions prepared."""
        with self._connection.transaction():
            return check_invariants(
                PostgresTx(self._connection, load("postgres"), now=clock.now(), clock=clock, hook=None)
            )

    def give_back(self) -> None:
        """Empty it for the next one; where that cannot be done, it is not used again."""
        try:
            self._connection.execute(_LEFT)
            is_as_before = self._connection.execute(_SHAPE).fetchone() == self._shape
            if is_as_before:
                self._connection.execute(self._empty)
        except psycopg.Error:
            is_as_before = False
        if not is_as_before:
            self.drop()

    def drop(self) -> None:
        """Remove it, where there is one."""
        if self._url is not None:
            self._connection.close()
            self._server.drop_database(self._url)
            self._url = None

    def _emptying(self) -> bytes:
        """Return the statements that empty every table but that of migrations, and let numbers begin with 1."""
        rows = self._connection.execute(
            "SELECT relkind, relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        ).fetchall()
        deletes = [f"DELETE FROM {name}" for kind, name in rows if kind == "r" and name != "keryx_schema"]
        numbers = [f"setval('{name}', 1, false)" for kind, name in rows if kind == "S"]
        # As a replica, nobody checks references: the order of the tables does not matter.
        return "; ".join(
            ["SET session_replication_role = replica", *deletes, f"SELECT {', '.join(numbers)}"]
        ).encode()
