"""The rest of Keryx uses only the public modules of search, and no table of the index."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from keryx.store.migrate import search_tables
from tests.architecture.source import PACKAGE, ROOT, modules, strings

SEARCH = "keryx.core.search"
FACE = {
    # A query and its answer.
    f"{SEARCH}.views.search": {
        "Hit",
        "Neighbour",
        "Order",
        "SearchOptions",
        "SearchResult",
        "SessionHits",
        "Snippet",
        "search",
    },
    # The task that keeps the index up to date, its single steps, and what a library or an operator does with the index.
    f"{SEARCH}.indexing.indexer": {"Indexer"},
    f"{SEARCH}.transactions.index_messages": {"IndexStep", "clear_index", "index_step"},
    f"{SEARCH}.views.verify_index": {"verify_index"},
    # The handler of the command.
    f"{SEARCH}.transactions": {"commands"},
    # The words of a text, for other rules that compare texts.
    f"{SEARCH}.rules.tokens": {"tokenize"},
}
OUTSIDE = (PACKAGE, ROOT / "bench", ROOT / "tests")
INSIDE = re.compile(r"core/search/|(?:conformance|unit)/search/")
"""Paths of search itself and of its own tests."""
MAY_NAME_TABLES = {
    "store/migrate.py": "the store makes the tables, and looks whether they are there",
    "gateway/stores.py": "the benchmark copies a whole store, the index included, from SQLite to PostgreSQL",
}
SCHEMAS = re.compile(r"store/(migrations/search|schema)\.(sqlite|postgres)\.sql")
_TABLES = re.compile(rf"\b({'|'.join(search_tables('sqlite'))})\b")


def imported(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield (line, module, name) of every import of search; the name is empty for a whole module."""
    for node in ast.walk(tree):
        found: list[tuple[int, str, str]] = []
        match node:
            case ast.ImportFrom(module=str(module), names=names, lineno=line):
                found = [(line, module, alias.name) for alias in names]
            case ast.Import(names=names, lineno=line):
                found = [(line, alias.name, "") for alias in names]
            case _:
                pass
        yield from (each for each in found if f"{each[1]}.{each[2]}.".startswith(f"{SEARCH}."))


def behind_the_face(folder: Path) -> list[str]:
    """Return the imports of search that are not of its public face."""
    return [
        f"{module.name}:{line} {imports} {name}".rstrip()
        for module in modules(folder)
        if not INSIDE.search(module.name)
        for line, imports, name in imported(module.tree)
        if name not in FACE.get(imports, ())
    ]


def named_tables(folder: Path) -> list[str]:
    """Return where source outside search names a table of the index."""
    python = [
        f"{module.name}:{line} {found[1]}"
        for module in modules(folder)
        if not INSIDE.search(module.name) and module.name not in MAY_NAME_TABLES
        for line, text in strings(module.tree)
        if (found := _TABLES.search(text))
    ]
    sql = [
        f"{path} {found[1]}"
        for path in (each.relative_to(folder).as_posix() for each in sorted(folder.rglob("*.sql")))
        if not INSIDE.search(path) and not SCHEMAS.fullmatch(path)
        if (found := _TABLES.search((folder / path).read_text(encoding="utf-8")))
    ]
    return python + sql


def test_other_modules_import_only_the_face_of_search() -> None:
    assert [each for folder in OUTSIDE for each in behind_the_face(folder)] == []


def test_the_face_consists_of_names_that_exist() -> None:
    for name, expected in FACE.items():
        path = PACKAGE.parent / name.replace(".", "/")
        if path.is_dir():
            assert all((path / f"{each}.py").exists() for each in expected)
            continue
        tree = ast.parse(path.with_suffix(".py").read_text(encoding="utf-8"))
        defined = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        defined |= {
            alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        defined |= {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        assert expected <= defined, name


def test_other_modules_name_no_table_of_the_index() -> None:
    assert named_tables(PACKAGE) + named_tables(ROOT / "bench") == []


def test_a_planted_breach_is_found(tmp_path: Path) -> None:
    breaches = {
        "library/planted.py": "from keryx.core.search.tables.segments import list_segments\n",
        "gateway/planted.py": "import keryx.core.search.rules.blocks\n",
        "app.py": "from keryx.core.search.views.search import parse_query\n",
        "tools/planted.py": "from keryx.core.search.views import search\n",
        "core/turns/views.py": "from keryx.core import search\n",
    }
    allowed = {
        "core/search/views/planted.py": "from keryx.core.search.tables.segments import list_segments\n",
        "cli/planted.py": "from keryx.core.search.views.search import SearchResult, search\n",
        "mcp/planted.py": "from keryx.core.search.transactions import commands\n",
    }
    for name, text in (breaches | allowed).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert {each.partition(":")[0] for each in behind_the_face(tmp_path)} == breaches.keys()


def test_a_planted_table_is_found(tmp_path: Path) -> None:
    planted = {
        "core/turns/tables/turns.sql": "SELECT 1 FROM search_segments",
        "core/search/tables/segments.sql": "SELECT 1 FROM search_segments",
        "store/migrations/search.sqlite.sql": "CREATE TABLE IF NOT EXISTS search_segments (id INTEGER)",
        "library/reading.py": 'NAME = "search_blocks.find"\n',
        "library/changing.py": '"""Prose about search_blocks."""\n',
    }
    for name, text in planted.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = named_tables(tmp_path)
    assert found == ["library/reading.py:1 search_blocks", "core/turns/tables/turns.sql search_segments"]
