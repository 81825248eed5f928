"""The interface of a database: ``Database`` runs functions in transactions, ``Tx`` runs named statements.

A function for ``write`` or ``read`` is synchronous and uses only its ``Tx``: it must not send, sleep or read a
clock, because the database may run the whole function again.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from keryx.clock import Micros
from keryx.store.statements import Dialect, R, Statement, Topic
from keryx.store.statements import Row as Row

T = TypeVar("T")
Hook = Callable[[str], None]
"""Called with a statement's name right before the statement runs; tests inject faults here."""


class RaceLost(Exception):
    """Raised by a function that lost a race for a row: the store runs the whole function again."""


class ReadTx(ABC):
    """A consistent view of the store."""

    def __init__(self, statements: Mapping[str, Statement], hook: Hook | None) -> None:
        self._statements = statements
        self._hook = hook
        self.wakes: set[Topic] = set()
        """The topics that may have work because of this transaction."""

    @property
    @abstractmethod
    def now(self) -> Micros:
        """The wall time for records; constant during the transaction."""

    @property
    @abstractmethod
    def lease_now(self) -> Micros:
        """The time that decides whether a lease has expired."""

    @property
    @abstractmethod
    def boot_id(self) -> str:
        """The id of the boot from which ``lease_now`` counts; empty if the database server provides the time."""

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        """Run a named statement and return all its rows."""
        statement = self._statement(name, params)
        rows = self._fetch(statement, params)
        if statement.wakes and rows:
            self.wakes |= statement.wakes
        return rows

    def row(self, name: str, /, **params: Any) -> Row | None:
        """Run a named statement and return its first row, or None."""
        rows = self.rows(name, **params)
        return rows[0] if rows else None

    def all(self, kind: type[R], name: str, /, **params: Any) -> list[R]:
        """Run a named statement and return its rows as records, whose fields are filled by column name."""
        rows = self.rows(name, **params)
        return list(map(self._statements[name].maker(kind), rows)) if rows else []

    def one(self, kind: type[R], name: str, /, **params: Any) -> R | None:
        """Run a named statement and return its first row as a record, or None."""
        rows = self.rows(name, **params)
        return self._statements[name].maker(kind)(rows[0]) if rows else None

    def value(self, name: str, /, **params: Any) -> Any:
        """Run a named statement and return the first column of its first row, or None."""
        rows = self.rows(name, **params)
        return rows[0][0] if rows else None

    def values(self, name: str, /, **params: Any) -> list[Any]:
        """Run a named statement and return the first column of its rows."""
        return [row[0] for row in self.rows(name, **params)]

    def exists(self, name: str, /, **params: Any) -> bool:
        """Run a named statement and say whether it returns a row."""
        return bool(self.rows(name, **params))

    def _statement(self, name: str, params: dict[str, Any]) -> Statement:
        statement = self._statements[name]
        for given in statement.given:
            params[given] = getattr(self, given)
        if self._hook is not None:
            self._hook(name)
        return statement

    @abstractmethod
    def _fetch(self, statement: Statement, params: dict[str, Any]) -> list[Row]:
        """Execute a statement and return its rows; on the first row, also fill in the names of its columns."""


class Tx(ReadTx):
    """A transaction that may write."""

    def run(self, name: str, /, **params: Any) -> int:
        """Run a named statement and return the number of changed rows."""
        statement = self._statement(name, params)
        changed = self._change(statement, params)
        if statement.wakes and changed:
            self.wakes |= statement.wakes
        return changed

    def run_many(self, name: str, /, many: Sequence[dict[str, Any]]) -> None:
        """Run a named statement once for each set of parameters."""
        if many:
            given: dict[str, Any] = {}
            statement = self._statement(name, given)
            self.wakes |= statement.wakes
            self._change_many(statement, [{**params, **given} for params in many])

    @abstractmethod
    def _change(self, statement: Statement, params: dict[str, Any]) -> int: ...

    @abstractmethod
    def _change_many(self, statement: Statement, many: Sequence[dict[str, Any]]) -> None: ...


def noting(work: Callable[[Tx], T], wakes: set[Topic]) -> Callable[[Tx], T]:
    """Return ``work`` wrapped so that it also adds its transaction's topics to ``wakes``."""

    def run(tx: Tx) -> T:
        result = work(tx)
        wakes.update(tx.wakes)
        return result

    return run


class Database(ABC):
    """An open store. SQLite and PostgreSQL behave the same; one conformance suite tests both."""

    dialect: Dialect

    @abstractmethod
    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one transaction and return its result after the commit is durable.

        A task that is cancelled while it awaits this call first waits for the outcome.
        """

    @abstractmethod
    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Run ``work`` on one consistent snapshot."""

    @abstractmethod
    async def write_index(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in a separate transaction that may write the search index and read all tables.

        If the index is damaged, start an empty index and run ``work`` once more.
        """

    @abstractmethod
    async def discard_index(self) -> None:
        """Delete the search index and start an empty one."""

    @property
    @abstractmethod
    def change_no(self) -> int:
        """The number of commits noticed so far: read it, query the store, then wait for commits ``since`` it."""

    @abstractmethod
    async def changed(self, *, since: int, timeout_seconds: float, topic: Topic | None = None) -> bool:
        """Wait for a commit, up to the timeout; return whether there may be new rows.

        Commits of this process are noticed at once, commits of others within about 100 ms. With a ``topic``, a commit
        of this process counts only if the topic may have work.
        """

    @abstractmethod
    async def close(self) -> None:
        """Finish running transactions and release all resources."""
