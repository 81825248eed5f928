"""A transaction on one SQLite connection."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import apsw

from keryx.clock import Clock, Micros
from keryx.store.database import Hook, Row, Tx
from keryx.store.statements import Statement


class SqliteTx(Tx):
    """A transaction on one SQLite connection."""

    def __init__(
        self,
        connection: apsw.Connection,
        statements: Mapping[str, Statement],
        clock: Clock,
        *,
        hook: Hook | None = None,
        guard: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(statements, hook)
        self._connection = connection
        self._clock = clock
        self._guard = guard
        self._now = clock.now()

    @property
    def now(self) -> Micros:
        """The wall time at which the function began."""
        return self._now

    @property
    def lease_now(self) -> Micros:
        """This machine's monotonic clock: all processes that use the file run on this machine."""
        return self._clock.monotonic()

    @property
    def boot_id(self) -> str:
        """The boot from which the monotonic clock counts."""
        return self._clock.boot_id()

    def _fetch(self, statement: Statement, params: dict[str, Any]) -> list[Row]:
        if self._guard is not None:
            self._guard()
        cursor = self._connection.execute(statement.sql, params)
        if not statement.columns:
            with suppress(apsw.ExecutionCompleteError):  # no rows, no names
                statement.columns[:] = [column[0] for column in cursor.get_description()]
        return cursor.fetchall()

    def _change(self, statement: Statement, params: dict[str, Any]) -> int:
        self._connection.execute(statement.sql, params)
        return self._connection.changes()

    def _change_many(self, statement: Statement, many: Sequence[dict[str, Any]]) -> None:
        # apsw runs a statement with RETURNING only as far as its rows are read.
        list(self._connection.executemany(statement.sql, many))
