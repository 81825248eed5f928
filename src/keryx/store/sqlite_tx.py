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

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        """Run a named statement and return all its rows."""
        if self._guard is not None:
            self._guard()
        statement = self._statement(name, params)
        cursor = self._connection.execute(statement.sql, params)
        if not statement.columns:
            with suppress(apsw.ExecutionCompleteError):  # no rows, no names
                statement.columns[:] = [column[0] for column in cursor.get_description()]
        rows = cursor.fetchall()
        if statement.wakes and rows:
            self.wakes |= statement.wakes
        return rows

    def run(self, name: str, /, **params: Any) -> int:
        """Run a named statement and return how many rows it changed."""
        statement = self._statement(name, params)
        self._connection.execute(statement.sql, params)
        changed = self._connection.changes()
        if statement.wakes and changed:
            self.wakes |= statement.wakes
        return changed

    def run_many(self, name: str, /, many: Sequence[dict[str, Any]]) -> None:
        """Run a named statement once for each set of parameters."""
        if not many:
            return
        given: dict[str, Any] = {}
        statement = self._statement(name, given)
        self.wakes |= statement.wakes
        # apsw runs a statement with RETURNING only as far as its rows are read.
        list(self._connection.executemany(statement.sql, ({**params, **given} for params in many)))
