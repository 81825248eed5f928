"""A transaction on one PostgreSQL connection."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import psycopg

from keryx.clock import Clock, Micros
from keryx.store.database import Hook, Row, Tx
from keryx.store.statements import Statement

Connection: TypeAlias = psycopg.Connection[Row]


class PostgresTx(Tx):
    """A transaction on one PostgreSQL connection."""

    def __init__(
        self,
        connection: Connection,
        statements: Mapping[str, Statement],
        *,
        now: Micros,
        clock: Clock | None,
        hook: Hook | None,
    ) -> None:
        super().__init__(statements, hook)
        self.connection = connection
        self._now = now
        self._clock = clock

    @property
    def now(self) -> Micros:
        """The server's wall time at which the function began."""
        return self._now

    @property
    def lease_now(self) -> Micros:
        """The server's clock: all holders of leases on this database share it."""
        return self._now if self._clock is None else self._clock.monotonic()

    @property
    def boot_id(self) -> str:
        """Empty: the server's clock does not start over."""
        return ""

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        """Run a named statement and return all its rows."""
        statement = self._statement(name, params)
        cursor = self.connection.execute(statement.sql.encode(), params)
        if not statement.columns and cursor.description is not None:
            statement.columns[:] = [column.name for column in cursor.description]
        rows = cursor.fetchall()
        if statement.wakes and rows:
            self.wakes |= statement.wakes
        return rows

    def run(self, name: str, /, **params: Any) -> int:
        """Run a named statement and return how many rows it changed."""
        statement = self._statement(name, params)
        changed = self.connection.execute(statement.sql.encode(), params).rowcount
        if statement.wakes and changed:
            self.wakes |= statement.wakes
        return changed

    def run_many(self, name: str, /, many: Sequence[dict[str, Any]]) -> None:
        """Run a named statement once for each set of parameters, in one round trip."""
        if not many:
            return
        given: dict[str, Any] = {}
        statement = self._statement(name, given)
        self.wakes |= statement.wakes
        with self.connection.cursor() as cursor:
            cursor.executemany(statement.sql.encode(), [{**params, **given} for params in many])
