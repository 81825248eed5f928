"""Every SQL statement has a name, a sentence and a caller, and both databases understand it."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

import apsw
import psycopg

from keryx.store.migrate import migrate_sqlite, search_schema
from keryx.store.statements import GIVEN_BY_STORE, load, sql_files
from tests.architecture.source import PACKAGE, modules, strings

RUNNERS = {"row", "rows", "run", "run_many"}
_NAME = re.compile(r"[a-z_]+\.[a-z_0-9]+")


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield where a statement is run, its name, and the call."""
    for module in modules(PACKAGE):
        for node in ast.walk(module.tree):
            match node:
                case ast.Call(func=ast.Attribute(attr=attribute), args=[ast.Constant(value=str(name)), *_]):
                    if attribute in RUNNERS and _NAME.fullmatch(name):
                        yield f"{module.name}:{node.lineno}", name, node
                case _:
                    pass


def test_every_statement_is_introduced_by_a_sentence() -> None:
    silent = [
        name
        for dialect in ("sqlite", "postgres")
        for name, statement in load(dialect).items()
        if not re.match(r"[A-Z`:].*[.:?]$", statement.doc)
    ]
    assert silent == []


def test_a_file_has_the_statements_of_one_noun_and_a_noun_has_one_file() -> None:
    files: dict[str, set[str]] = defaultdict(set)
    for path in sorted((PACKAGE / "core").rglob("*.sql")):
        nouns = set(re.findall(r"^-- name: (\w+)\.", path.read_text(encoding="utf-8"), re.MULTILINE))
        assert len(nouns) == 1, f"{path}: {sorted(nouns)}"
        files[nouns.pop()].add(str(path).removesuffix(".postgres.sql").removesuffix(".sql"))
    assert {noun: paths for noun, paths in files.items() if len(paths) > 1} == {}


def test_every_sql_file_of_the_subjects_is_loaded() -> None:
    loaded = {str(resource) for resource in sql_files(PACKAGE / "core")}
    assert loaded == {str(path) for path in (PACKAGE / "core").rglob("*.sql")}


def test_every_statement_is_used_by_its_name() -> None:
    said = {text for module in modules(PACKAGE) for _, text in strings(module.tree)}
    assert sorted(load("sqlite").keys() - said) == []


def test_only_statements_that_exist_are_run() -> None:
    known = load("sqlite")
    assert [f"{where} {name}" for where, name, _ in calls() if name not in known] == []


def test_a_call_gives_exactly_the_parameters_of_its_statement() -> None:
    shared, special = load("sqlite"), load("postgres")
    wrong = []
    for where, name, call in calls():
        given = {keyword.arg for keyword in call.keywords}
        if name not in shared or None in given or len(call.args) > 1:
            continue  # an unknown name is the test above; `**values` and `run_many` show themselves when they run
        wanted = (shared[name].params | special[name].params) - GIVEN_BY_STORE
        if given != wanted:
            wrong.append(f"{where} {name}: gives {sorted(map(str, given))}, wants {sorted(wanted)}")
    assert wrong == []


def test_sqlite_prepares_every_statement() -> None:
    connection = apsw.Connection(":memory:")
    migrate_sqlite(connection, now=0)
    for definition in search_schema("sqlite"):
        connection.execute(definition)
    refused = []
    for name, statement in load("sqlite").items():
        try:
            connection.execute(f"EXPLAIN {statement.sql}", dict.fromkeys(statement.params))
        except apsw.Error as error:
            refused.append(f"{name}: {error}")
    assert refused == []


def test_postgres_prepares_every_statement(postgres_url: str) -> None:
    refused = []
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for number, (name, statement) in enumerate(load("postgres").items()):
            try:
                connection.execute(f"PREPARE statement_{number} AS {_numbered(statement.sql)}".encode())
            except psycopg.Error as error:
                refused.append(f"{name}: {error}")
    assert refused == []


def _numbered(sql: str) -> str:
    """Give the parameters the numbers PostgreSQL knows them by; psycopg does the same when it prepares."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql)))
    return re.sub(r"%\((\w+)\)s", lambda match: f"${names.index(match[1]) + 1}", sql).replace("%%", "%")
