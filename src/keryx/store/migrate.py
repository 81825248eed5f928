"""Brings a database to the schema this code expects, in numbered steps that both databases share.

Two numbers decide who may open a store: the step it is at, and the oldest step whose code can still use it. A step
that only adds keeps the second number; one that older code would trip over raises it.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from keryx import __version__
from keryx.clock import Micros
from keryx.errors import StoreError, StoreTooNew
from keryx.store.statements import Dialect
from keryx.values import dataclass

if TYPE_CHECKING:
    import apsw
    import psycopg

LOCK_WAIT_MS = 30_000

_FILE = re.compile(r"^(?P<number>\d{4})_(?P<name>[a-z_]+)\.sql$")
_COMPATIBLE = re.compile(r"^-- compatible: (?P<number>\d+)$", re.MULTILINE)
_SEARCH_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (?P<name>search_\w+)")

_BOOKS = """CREATE TABLE IF NOT EXISTS keryx_schema (
    number BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    compatible BIGINT NOT NULL,
    keryx_version TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)"""
_HAS_BOOKS_SQLITE = "SELECT 1 FROM sqlite_schema WHERE name = 'keryx_schema'"
_HAS_BOOKS_POSTGRES = (
    "SELECT to_regclass('keryx_schema') IS NOT NULL AND to_regclass('search_state') IS NOT NULL"
)
_STATE = "SELECT number, compatible, keryx_version FROM keryx_schema ORDER BY number DESC LIMIT 1"
_RECORD = "INSERT INTO keryx_schema (number, name, compatible, keryx_version, applied_at) VALUES "
_ADVISORY_LOCK = 0x6B65727978
"""Any constant would do, as long as every Keryx uses the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One numbered step."""

    number: int
    name: str
    compatible: int
    statements: tuple[str, ...]


@cache
def migrations(dialect: Dialect) -> tuple[Migration, ...]:
    """All steps of this dialect, in order."""
    return read_migrations(files("keryx.store").joinpath("migrations", dialect))


def read_migrations(folder: Traversable) -> tuple[Migration, ...]:
    """The steps in ``folder``, in order; raises ``StoreError`` for a file that is none, or a gap in the numbers."""
    found = []
    for resource in folder.iterdir():
        match = _FILE.match(resource.name)
        if match is None:
            raise StoreError(f"{resource.name} is not a migration's name: write 0002_what_it_does.sql.")
        text = resource.read_text(encoding="utf-8")
        compatible = _COMPATIBLE.search(text)
        found.append(
            Migration(
                number=int(match["number"]),
                name=match["name"],
                compatible=int(compatible["number"]) if compatible else int(match["number"]),
                statements=split_statements(text),
            )
        )
    found.sort(key=lambda migration: migration.number)
    numbers = [migration.number for migration in found]
    if numbers != list(range(1, len(found) + 1)):
        raise StoreError(f"The migrations are numbered {numbers}: count from 1 without a gap.")
    return tuple(found)


@cache
def search_schema(dialect: Dialect) -> tuple[str, ...]:
    """The statements that make the search index's tables where they are missing."""
    resource = files("keryx.store").joinpath("migrations", f"search.{dialect}.sql")
    return split_statements(resource.read_text(encoding="utf-8"))


def search_tables(dialect: Dialect) -> tuple[str, ...]:
    """The names of the search index's tables."""
    return tuple(match["name"] for match in map(_SEARCH_TABLE.match, search_schema(dialect)) if match)


def split_statements(text: str) -> tuple[str, ...]:
    """The statements of a schema file, which holds no semicolon but at their ends."""
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return tuple(statement.strip() for statement in code.split(";") if statement.strip())


def steps_from(state: tuple[Any, ...] | None, steps: Sequence[Migration]) -> tuple[Migration, ...]:
    """What must still be applied to a store in this state; raises ``StoreTooNew`` for one that is ahead of us."""
    if state is None:
        return tuple(steps)
    number, compatible, version = state
    expected = steps[-1].number
    if number > expected and compatible > expected:
        raise StoreTooNew(
            f"This store was written by Keryx {version} (schema {number}); this is Keryx {__version__}, which knows "
            f"schemas up to {expected}. Install Keryx {version} or newer; nothing was changed."
        )
    return tuple(step for step in steps if step.number > number)


def migrate_sqlite(
    connection: "apsw.Connection", *, now: Micros, steps: Sequence[Migration] | None = None
) -> None:
    """Bring the file to the expected schema in one transaction, or leave it as it was."""
    steps = migrations("sqlite") if steps is None else steps
    connection.set_busy_timeout(LOCK_WAIT_MS)
    # Looking first: opening a store that is up to date must not wait for whoever is writing it.
    if connection.execute(_HAS_BOOKS_SQLITE).fetchone() and not steps_from(_state(connection), steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(_BOOKS)
        for step in steps_from(_state(connection), steps):
            for statement in step.statements:
                connection.execute(statement)
            connection.execute(
                _RECORD + "(?, ?, ?, ?, ?)", (step.number, step.name, step.compatible, __version__, now)
            )
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _state(connection: "apsw.Connection") -> tuple[Any, ...] | None:
    return connection.execute(_STATE).fetchone()


def migrate_postgres(
    connection: "psycopg.Connection[tuple[Any, ...]]",
    *,
    now: Micros,
    steps: Sequence[Migration] | None = None,
) -> None:
    """Bring the database to the expected schema in one transaction; gateways that start together take turns.

    ``connection`` is in autocommit mode.
    """
    steps = migrations("postgres") if steps is None else steps
    # Looking first: whoever opens a store that is up to date need not own its tables, and waits for nobody.
    has_books = connection.execute(_HAS_BOOKS_POSTGRES).fetchone()
    if has_books == (True,) and not steps_from(connection.execute(_STATE).fetchone(), steps):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ADVISORY_LOCK,))
        connection.execute(_BOOKS)
        for step in steps_from(connection.execute(_STATE).fetchone(), steps):
            for statement in step.statements:
                connection.execute(statement.encode())
            connection.execute(
                (_RECORD + "(%s, %s, %s, %s, %s)").encode(),
                (step.number, step.name, step.compatible, __version__, now),
            )
        for statement in search_schema("postgres"):
            connection.execute(statement.encode())
