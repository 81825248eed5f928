"""Each subject's SQL writes and locks only its own tables, and joins that only read across subjects are views.

A table belongs to the subject whose SQL inserts into it. A write, or a read that locks rows, may look at tables of
other subjects, because there the condition must hold in the same statement.
"""

import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from keryx.core.upkeep.transactions.purge_session import PURGES
from keryx.store.migrate import migrate_sqlite, search_schema
from keryx.store.statements import load, parse, sql_files
from tests.architecture.source import PACKAGE, modules

LEASE = (
    "The lease is in the session's row: PostgreSQL re-checks only the row it waited for, so a condition on another "
    "table would be judged as of before the wait."
)
WRITES_ELSEWHERE = {
    "leases.break": LEASE,
    "leases.check": LEASE,
    "leases.free_of_holder": LEASE,
    "leases.release": LEASE,
    "leases.renew": LEASE,
    "leases.take": LEASE,
}
"""The statements that write or lock a table of another subject, each with the reason."""

VISIBLE = "Who may see the row is a condition of finding it."
CONDITION = "Decides whether the transaction that reads it may go on."
READS_ELSEWHERE = {
    "access.find_known_id": CONDITION,
    "feed.list_after": VISIBLE,
    "inbox.list_tasks": "The tasks that a session gave away are found by its links, in the order of locking.",
    "leases.find_live": LEASE,
    "leases.list_held": LEASE,
    "memories.find_visible": VISIBLE,
    "outbox.list_stuck": "A delivery is stuck where the connector lease it was claimed under is gone.",
    "schedules.find_open_fire": CONDITION,
    "schedules.next_due": "Schedules of people who are blocked are not due.",
    "sessions.find_visible": VISIBLE,
    "turns.list_orphans": LEASE,
}
"""The plain reads in ``tables`` that name a table of another subject, each with the reason."""

_WORDS = r"\w+(?:\s+(?:AS\s+)?\w+)?"
_READ = re.compile(rf"\b(?:FROM|JOIN)\s+({_WORDS}(?:\s*,\s*{_WORDS})*)", re.IGNORECASE)
_WRITTEN = re.compile(
    r"\b(?:INSERT\s+INTO|(?<!\bDO )(?<!\bFOR )(?<!\bKEY )UPDATE|DELETE\s+FROM)\s+(\w+)", re.IGNORECASE
)
_INSERTED = re.compile(r"\bINSERT\s+INTO\s+(\w+)", re.IGNORECASE)
_LOCKING = re.compile(r"\bFOR\s+(?:NO\s+KEY\s+)?(?:UPDATE|(?:KEY\s+)?SHARE)\b", re.IGNORECASE)
_TEXT = re.compile(r"'[^']*'")
_INNER = re.compile(r"\([^()]*\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """One statement of one dialect, and what it names."""

    name: str
    subject: str
    layer: str
    tables: frozenset[str]
    written: frozenset[str]
    """Written or locked."""
    inserted: frozenset[str]


def uses(package: Path) -> list[Uses]:
    """Return what the statements of a package name, in both dialects."""
    core = package / "core"
    return [
        Uses(
            name=statement.name,
            subject=parts[0],
            layer=parts[1].partition(".")[0],
            tables=named(statement.sql) | written(statement.sql),
            written=written(statement.sql),
            inserted=frozenset(_INSERTED.findall(statement.sql)),
        )
        for resource in sql_files(core)
        for parts in [Path(str(resource)).relative_to(core).parts]
        for statement in parse(resource.read_text(encoding="utf-8"), dialect="sqlite")
    ]


def named(sql: str) -> frozenset[str]:
    """Return what a statement reads from; the names of its own WITH are among them."""
    lists = _READ.findall(_TEXT.sub("''", sql))
    return frozenset(item.split()[0] for names in lists for item in names.split(","))


def written(sql: str) -> frozenset[str]:
    """Return the tables whose rows a statement writes or locks."""
    text = _TEXT.sub("''", sql)
    if not _LOCKING.search(text):
        return frozenset(_WRITTEN.findall(text))
    # Rows of the statement's own FROM are locked, those of a subselect are not.
    while _INNER.search(text):
        text = _INNER.sub("", text)
    return named(text)


def owners(found: Iterable[Uses]) -> dict[str, set[str]]:
    """Return the subjects that insert into each table."""
    inserting: dict[str, set[str]] = defaultdict(set)
    for each in found:
        for table in each.inserted:
            inserting[table].add(each.subject)
    return inserting


def writes_elsewhere(found: Sequence[Uses]) -> set[str]:
    """Return the statements that write or lock a table of another subject, or that write from a view."""
    owned = owners(found)
    return {
        each.name
        for each in found
        for table in each.written
        if owned.get(table) != {each.subject} or each.layer == "views"
    }


def reads_elsewhere(found: Sequence[Uses]) -> set[str]:
    """Return the statements of ``tables`` that only read, and name a table of another subject."""
    owned = owners(found)
    changing = {each.name for each in found if each.written}
    return {
        each.name
        for each in found
        if each.layer == "tables" and each.name not in changing
        for table in each.tables
        if not owned.get(table, set()) <= {each.subject}
    }


def breaches(elsewhere: set[str], exceptions: Mapping[str, str]) -> set[str]:
    """Return the statements without an exception, and the exceptions that no statement needs."""
    return {f"{name} has no exception" for name in elsewhere - exceptions.keys()} | {
        f"{name} needs no exception" for name in exceptions.keys() - elsewhere
    }


@pytest.fixture(scope="module")
def found() -> list[Uses]:
    return uses(PACKAGE)


@pytest.fixture(scope="module")
def store() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    migrate_sqlite(connection, now=0)
    for definition in search_schema("sqlite"):
        connection.execute(definition)
    return connection


def tables_in(store: apsw.Connection) -> set[str]:
    rows = store.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return {str(name) for (name,) in rows}


def test_every_table_belongs_to_one_subject(found: list[Uses], store: apsw.Connection) -> None:
    owned = owners(found)
    assert {table: subjects for table, subjects in owned.items() if len(subjects) > 1} == {}
    assert tables_in(store) - owned.keys() == {"keryx_schema"}  # the store's own


def test_a_subject_writes_and_locks_only_its_own_tables(found: list[Uses]) -> None:
    assert breaches(writes_elsewhere(found), WRITES_ELSEWHERE) == set()


def test_joins_that_only_read_across_subjects_are_views(found: list[Uses]) -> None:
    assert breaches(reads_elsewhere(found), READS_ELSEWHERE) == set()


def test_upkeep_knows_no_table_of_another_subject(found: list[Uses]) -> None:
    named_by_upkeep = {table for each in found if each.subject == "upkeep" for table in each.tables}
    assert named_by_upkeep == {"malformed", "nodes"}


def test_every_purge_of_a_subject_is_run() -> None:
    defined = {
        module.name.split("/")[1]
        for module in modules(PACKAGE)
        if re.fullmatch(r"core/\w+/(transactions|transactions/purge)\.py", module.name)
        and any(function.name == "purge" for function in module.functions())
    }
    run = [purge.__module__.split(".")[2] for purge in PURGES]
    assert sorted(run) == sorted(defined)


def test_the_invariants_of_every_subject_are_checked() -> None:
    runner = (PACKAGE / "core/upkeep/views/invariants.py").read_text(encoding="utf-8")
    imported = set(re.findall(r"from keryx\.core\.(\w+)\.views(?:\.| import )invariants", runner))
    stated = {path.parents[1].name for path in (PACKAGE / "core").glob("*/views/invariants.py")}
    assert imported == stated - {"upkeep"}


def test_sqlite_finds_the_same_tables_in_every_statement(found: list[Uses], store: apsw.Connection) -> None:
    known, seen = tables_in(store), set[str]()
    writing = {apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE}

    def note(operation: int, table: str | None, *_: str | None) -> int:
        if operation == apsw.SQLITE_READ or operation in writing:
            seen.add(str(table))
        return apsw.SQLITE_OK

    differing = {}
    for name, statement in load("sqlite").items():
        seen.clear()
        store.authorizer = note
        store.execute(f"EXPLAIN {statement.sql}", dict.fromkeys(statement.params))
        store.authorizer = None
        if (mine := (named(statement.sql) | written(statement.sql)) & known) != seen & known:
            differing[name] = (mine, {*seen})
    assert differing == {}


PLANTED = {
    "core/turns/tables/planted.sql": "INSERT INTO covers (session_id) VALUES (:x)",
    "core/people/tables/planted.sql": "UPDATE approvals SET state = 'x' WHERE id = 1",
    "core/media/tables/planted.sql": "DELETE\nFROM turns WHERE id = 1",
    "core/schedules/tables/planted.postgres.sql": "SELECT c.id FROM schedules c, people p WHERE p.id = 1 FOR UPDATE",
    "core/turns/views/planted.sql": "UPDATE turns SET reason = NULL",
}


@pytest.mark.parametrize(("path", "sql"), PLANTED.items())
def test_a_planted_write_is_found(path: str, sql: str, tmp_path: Path) -> None:
    found = writes_elsewhere(planted(path, sql, tmp_path))
    assert "planted.x has no exception" in breaches(found, WRITES_ELSEWHERE)


INNOCENT = {
    "core/accounts/tables/planted.sql": "INSERT INTO connector_leases (holder) VALUES (:x) "
    "ON CONFLICT (holder) DO UPDATE SET holder = 'turns'",
    "core/schedules/tables/planted.postgres.sql": "SELECT id FROM schedules "
    "WHERE owner_id NOT IN (SELECT id FROM people) FOR UPDATE SKIP LOCKED",
}


@pytest.mark.parametrize(("path", "sql"), INNOCENT.items())
def test_a_write_that_only_looks_elsewhere_is_none(path: str, sql: str, tmp_path: Path) -> None:
    found = planted(path, sql, tmp_path)
    assert "planted.x" not in writes_elsewhere(found) | reads_elsewhere(found)


@pytest.mark.parametrize(
    ("layer", "expected"), [("tables", {"planted.x has no exception"}), ("views", set())]
)
def test_a_planted_join_belongs_in_a_view(layer: str, expected: set[str], tmp_path: Path) -> None:
    join = "SELECT t.id\nFROM turns t\nJOIN sessions s ON s.id = t.session_id"
    found = planted(f"core/turns/{layer}/planted.sql", join, tmp_path)
    assert breaches(reads_elsewhere(found), READS_ELSEWHERE) == expected


def test_an_exception_that_nothing_needs_is_found(found: list[Uses]) -> None:
    assert breaches(writes_elsewhere(found), {**WRITES_ELSEWHERE, "turns.add": "because"}) == {
        "turns.add needs no exception"
    }


def planted(path: str, sql: str, place: Path) -> list[Uses]:
    """Return what the statements of a copy of the package name, with one more among them."""
    ignored = shutil.ignore_patterns("__pycache__", "*.py")
    shutil.copytree(PACKAGE / "core", place / "core", ignore=ignored)
    (place / path).parent.mkdir(exist_ok=True)
    (place / path).write_text(f"-- name: planted.x\n-- Planted.\n{sql}\n")
    return uses(place)
