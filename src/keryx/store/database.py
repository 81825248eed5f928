"""What every layer above knows of a database: ``Database`` runs functions, ``Tx`` runs named statements.

A function given to ``write`` or ``read`` is synchronous and touches nothing but its ``Tx``: it must not send, sleep
or read a clock, because it can be run again whole.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from keryx.clock import Micros
from keryx.store.statements import Dialect, Statement, Topic

T = TypeVar("T")
Row = tuple[Any, ...]
Hook = Callable[[str], None]
"""Called with a statement's name right before it runs: where faults are planted."""


class Contended(Exception):
    """Raised inside a function that lost a race for a row: the store runs the whole function again."""


class ReadTx(ABC):
    """A consistent view of the store."""

    def __init__(self, statements: Mapping[str, Statement], hook: Hook | None) -> None:
        self._statements = statements
        self._hook = hook

    @property
    @abstractmethod
    def now(self) -> Micros:
        """Wall time, for records; the same during the whole transaction."""

    @property
    @abstractmethod
    def lease_now(self) -> Micros:
        """The clock that leases are judged by."""

    @property
    @abstractmethod
    def boot_id(self) -> str:
        """Which boot ``lease_now`` counts from; empty where the database server is the clock."""

    @abstractmethod
    def rows(self, name: str, /, **params: Any) -> list[Row]:
        """Run a named statement and return all its rows."""

    def row(self, name: str, /, **params: Any) -> Row | None:
        """Run a named statement and return its first row, or None."""
        rows = self.rows(name, **params)
        return rows[0] if rows else None

    def _statement(self, name: str, params: dict[str, Any]) -> Statement:
        statement = self._statements[name]
        for given in statement.given:
            params[given] = getattr(self, given)
        if self._hook is not None:
            self._hook(name)
        return statement


class Tx(ReadTx):
    """A transaction that may write."""

    def __init__(self, statements: Mapping[str, Statement], hook: Hook | None) -> None:
        super().__init__(statements, hook)
        self.wakes: set[Topic] = set()
        """What there may be to do because of what it wrote."""

    @abstractmethod
    def run(self, name: str, /, **params: Any) -> int:
        """Run a named statement and return how many rows it changed."""

    @abstractmethod
    def run_many(self, name: str, /, many: Sequence[dict[str, Any]]) -> None:
        """Run a named statement once for each set of parameters."""


def noting(work: Callable[[Tx], T], wakes: set[Topic]) -> Callable[[Tx], T]:
    """Return ``work`` that also notes what there may be to do once it is committed."""

    def run(tx: Tx) -> T:
        result = work(tx)
        wakes.update(tx.wakes)
        return result

    return run


class Database(ABC):
    """A store that is open. Both kinds behave the same; one conformance suite says so."""

    dialect: Dialect

    @abstractmethod
    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in one transaction and return its result once that is durable.

        If the awaiting task is cancelled, it first waits for the outcome.
        """

    @abstractmethod
    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Run ``work`` on one consistent snapshot."""

    @abstractmethod
    async def write_index(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in a transaction of its own that may write the search index and read everything.

        An index found damaged is begun anew, and ``work`` run once more.
        """

    @abstractmethod
    async def discard_index(self) -> None:
        """Throw the search index away and start an empty one."""

    @property
    @abstractmethod
    def change_no(self) -> int:
        """How many commits were noticed so far: take it, look, and then wait for what comes ``since`` it."""

    @abstractmethod
    async def changed(self, *, since: int, timeout_seconds: float, topic: Topic | None = None) -> bool:
        """Wait until somebody may have committed, at most so long; say whether something may be new.

        Commits of this process are noticed at once, those of others within some 100 ms. With a ``topic``, those of
        this process count only if they may have made something of it to do.
        """

    @abstractmethod
    async def close(self) -> None:
        """Finish what was begun and let go of everything."""
