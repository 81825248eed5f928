"""Every SQL statement has a name, a sentence and a caller, and both databases understand it."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import apsw
import psycopg

from keryx.store.migrate import migrate_sqlite, search_schema
from keryx.store.statements import GIVEN_BY_STORE, load, sql_files
from tests.architecture.source import PACKAGE, modules, strings

RUNNERS = {"row", "rows", "value", "values", "exists", "run", "run_many"}
RECORDS = {"one", "all"}
LISTED_TWICE = 5
"""So many columns that two statements list in the same order have one name."""
_NAME = re.compile(r"[a-z_]+\.[a-z_0-9]+")
_COLUMN_LIST = re.compile(
    rf"\b(?:SELECT|RETURNING)\s+((?:\w+\.)?\w+(?:,\s+(?:\w+\.)?\w+){{{LISTED_TWICE - 1},}})(?=\s|$)"
)


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield where a statement is run, its name, and the call."""
    for module in modules(PACKAGE):
        for node in ast.walk(module.tree):
            match node:
                case ast.Call(func=ast.Attribute(attr=attribute), args=[ast.Constant(value=str(name)), *_]):
                    if attribute in RUNNERS and _NAME.fullmatch(name):
                        yield f"{module.name}:{node.lineno}", name, node
                case ast.Call(func=ast.Attribute(attr=attribute), args=[_, ast.Constant(value=str(name))]):
                    if attribute in RECORDS and _NAME.fullmatch(name):
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
        if (
            name not in shared
            or None in given
            or len(call.args) > 1 + (not isinstance(call.args[0], ast.Constant))
        ):
            continue  # an unknown name is the test above; `**values` and `run_many` show themselves when they run
        wanted = (shared[name].params | special[name].params) - GIVEN_BY_STORE
        if given != wanted:
            wrong.append(f"{where} {name}: gives {sorted(map(str, given))}, wants {sorted(wanted)}")
    assert wrong == []


def test_no_module_reads_a_row_into_a_record_by_position() -> None:
    by_position = [
        f"{module.name}:{node.lineno}"
        for module in modules(PACKAGE / "core")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute | ast.Starred)
        if ast.unparse(node) == "*row" or ast.unparse(node).endswith("._make")
    ]
    assert by_position == []


def repeated_columns(texts: Iterable[str]) -> list[str]:
    """Return the lists of columns that the statements write more than once."""
    found = Counter(
        re.sub(r"\b\w+\.", "", " ".join(match[1].split()))
        for text in texts
        for match in _COLUMN_LIST.finditer(text)
    )
    return [columns for columns, count in found.items() if count > 1]


def test_a_list_of_columns_is_written_once() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "core").rglob("*.sql"))]
    assert repeated_columns(texts) == []
    again = "SELECT a.id, a.name,\n a.state, a.at, a.by\nFROM a; UPDATE b SET c = 1 RETURNING id, name, state, at, by"
    assert repeated_columns([again]) == ["id, name, state, at, by"]


def test_every_list_of_columns_is_used() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "core").rglob("*.sql")))
    named = re.findall(r"^-- columns: (\w+)$", texts, re.MULTILINE)
    assert named
    assert [name for name in named if not re.search(rf"\{{(\w+\.)?{name}\}}", texts)] == []


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
