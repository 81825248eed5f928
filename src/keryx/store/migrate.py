"""Migrate a database to the schema that this code expects, in numbered steps that both databases share.

Two numbers decide which code may open a store: the store's step, and the oldest step whose code can still use the
store. A step that only adds keeps the second number; a step that breaks older code raises it.
"""

import logging
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
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
_log = logging.getLogger("keryx.store")

_FILE = re.compile(r"^(?P<number>\d{4})_(?P<name>[a-z_]+)\.sql$")
_COMPATIBLE = re.compile(r"^-- compatible: (?P<number>\d+)$", re.MULTILINE)
_SEARCH_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (?P<name>search_\w+)")

_SCHEMA_TABLE = """CREATE TABLE IF NOT EXISTS keryx_schema (
    number BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    compatible BIGINT NOT NULL,
    keryx_version TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)"""
_HAS_SCHEMA_TABLE_SQLITE = "SELECT 1 FROM sqlite_schema WHERE name = 'keryx_schema'"
_HAS_SCHEMA_TABLE_POSTGRES = (
    "SELECT to_regclass('keryx_schema') IS NOT NULL AND to_regclass('search_state') IS NOT NULL"
)
_STATE = "SELECT number, compatible, keryx_version FROM keryx_schema ORDER BY number DESC LIMIT 1"
_RECORD = "INSERT INTO keryx_schema (number, name, compatible, keryx_version, applied_at) VALUES "
_ADVISORY_LOCK = 0x6B65727978
"""Any constant works, as long as every Keryx uses the same one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One numbered step."""

    number: int
    name: str
    compatible: int
    statements: tuple[str, ...]


@cache
def migrations(dialect: Dialect) -> tuple[Migration, ...]:
    """Return all steps of this dialect, in order."""
    return read_migrations(files("keryx.store").joinpath("migrations", dialect))


def read_migrations(folder: Traversable) -> tuple[Migration, ...]:
    """Return the steps in ``folder``, in order; raise ``StoreError`` for a wrong file name or a gap in the numbers."""
    found = []
    for resource in folder.iterdir():
        match = _FILE.match(resource.name)
        if match is None:
            raise StoreError(
                f"{resource.name} is not a valid name for a migration: write 0002_what_it_does.sql."
            )
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
        raise StoreError(f"The migrations are numbered {numbers}: number them from 1 without a gap.")
    return tuple(found)


@cache
def search_schema(dialect: Dialect) -> tuple[str, ...]:
    """Return the statements that create the missing tables of the search index."""
    resource = files("keryx.store").joinpath("migrations", f"search.{dialect}.sql")
    return split_statements(resource.read_text(encoding="utf-8"))


def search_tables(dialect: Dialect) -> tuple[str, ...]:
    """Return the names of the search index's tables."""
    return tuple(match["name"] for match in map(_SEARCH_TABLE.match, search_schema(dialect)) if match)


def split_statements(text: str) -> tuple[str, ...]:
    """Return the statements of a schema file, in which semicolons only end statements."""
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return tuple(statement.strip() for statement in code.split(";") if statement.strip())


def steps_from(state: tuple[Any, ...] | None, steps: Sequence[Migration]) -> tuple[Migration, ...]:
    """Return the steps to apply to a store in this state; raise ``StoreTooNew`` if a newer Keryx wrote the store."""
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
    connection: "apsw.Connection",
    *,
    now: Micros,
    steps: Sequence[Migration] | None = None,
    copy: Callable[[int], Path] | None = None,
) -> None:
    """Migrate the file to the expected schema in one transaction, or leave the file unchanged.

    ``copy`` copies a file that has a schema, given the schema's number, while no other process can write.
    """
    steps = migrations("sqlite") if steps is None else steps
    connection.set_busy_timeout(LOCK_WAIT_MS)
    # Check first without a lock: opening an up-to-date store must not wait for a writer.
    if connection.execute(_HAS_SCHEMA_TABLE_SQLITE).fetchone() and not steps_from(_state(connection), steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(_SCHEMA_TABLE)
        state = _state(connection)
        missing = steps_from(state, steps)
        if state is not None and missing and copy is not None:
            _log.warning(
                "The store is migrated from schema %s to %s. %s is a copy of the old store, kept for 30 days.",
                *(state[0], missing[-1].number, copy(state[0])),
            )
        for step in missing:
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
    """Migrate the database to the expected schema in one transaction; gateways that start together take turns.

    ``connection`` is in autocommit mode.
    """
    steps = migrations("postgres") if steps is None else steps
    # Check first without a lock: opening an up-to-date store needs no ownership of the tables, and no wait.
    has_schema_table = connection.execute(_HAS_SCHEMA_TABLE_POSTGRES).fetchone()
    if has_schema_table == (True,) and not steps_from(connection.execute(_STATE).fetchone(), steps):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ADVISORY_LOCK,))
        connection.execute(_SCHEMA_TABLE)
        state = connection.execute(_STATE).fetchone()
        missing = steps_from(state, steps)
        if state is not None and missing:
            info = connection.info
            _log.warning(
                "The store is migrated from schema %s to %s now, in one transaction. Before an update, dump it with: "
                "pg_dump --format=custom --file=keryx-schema-%s.dump --host=%s --port=%s --username=%s %s",
                *(state[0], missing[-1].number, state[0], info.host, info.port, info.user, info.dbname),
            )
        for step in missing:
            for statement in step.statements:
                connection.execute(statement.encode())
            connection.execute(
                (_RECORD + "(%s, %s, %s, %s, %s)").encode(),
                (step.number, step.name, step.compatible, __version__, now),
            )
        for statement in search_schema("postgres"):
            connection.execute(statement.encode())
