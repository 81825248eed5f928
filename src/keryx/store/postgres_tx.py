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

    def _fetch(self, statement: Statement, params: dict[str, Any]) -> list[Row]:
        cursor = self.connection.execute(statement.sql.encode(), params)
        if not statement.columns and cursor.description is not None:
            statement.columns[:] = [column.name for column in cursor.description]
        return cursor.fetchall()

    def _change(self, statement: Statement, params: dict[str, Any]) -> int:
        return self.connection.execute(statement.sql.encode(), params).rowcount

    def _change_many(self, statement: Statement, many: Sequence[dict[str, Any]]) -> None:
        with self.connection.cursor() as cursor:  # one round trip
            cursor.executemany(statement.sql.encode(), many)
