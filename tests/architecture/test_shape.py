"""The source is small, says what it is, and keeps SQL at home."""

from pathlib import Path

import pytest

from tests.architecture import shape, source
from tests.architecture.source import PACKAGE


def test_modules_and_functions_stay_small() -> None:
    assert source.oversized(PACKAGE) == []


def test_no_folder_is_crowded() -> None:
    assert shape.crowded(PACKAGE) == []


def test_the_rule_of_crowded_folders_bites(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    for number in range(shape.FOLDER_MODULES_MAX + 1):
        (tmp_path / "full" / f"module_{number}.py").touch()
    assert shape.crowded(tmp_path) == ["full: 21 modules; two subjects share it"]


def test_every_module_says_what_it_is() -> None:
    assert source.without_docstring(PACKAGE) == []


def test_sql_stays_in_the_store() -> None:
    assert source.stray_sql(PACKAGE) == []


LONG_FUNCTION = "def f():\n" + "    x = 1\n" * source.FUNCTION_LINES_MAX


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('"""Doc."""\n' + "x = 1\n" * source.MODULE_LINES_MAX, "planted.py: 401 lines"),
        (LONG_FUNCTION, "planted.py:1 f: 71 lines"),
        ("class C:\n    async def f(self, a, b, c, d, e, f, g): ...\n", "planted.py:2 f: 7 parameters"),
        ("def f(a, b, c, *, d, e, f, g): ...\n", "planted.py:1 f: 7 parameters"),
    ],
)
def test_the_size_rule_bites(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "planted.py").write_text(text)
    [found] = source.oversized(tmp_path)
    assert found.startswith(complaint)


def test_sizes_at_the_limit_are_fine(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("x = 1\n" * source.MODULE_LINES_MAX)
    (tmp_path / "function.py").write_text("def f(a, b, c, d, e, f):\n" + "    x = 1\n" * 69)
    assert source.oversized(tmp_path) == []


def test_the_docstring_rule_bites(tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text("x = 1\n")
    assert source.without_docstring(tmp_path) == ["silent.py"]


@pytest.mark.parametrize(
    "text",
    [
        'Q = "SELECT id FROM sessions"',
        'Q = """\n  select *\n  from sessions"""',
        'Q = f"INSERT INTO {table} VALUES (1)"',
        'Q = "update sessions set title = 1"',
        'Q = "DELETE FROM feed"',
        'Q = "CREATE TABLE x (y)"',
        'Q = "PRAGMA journal_mode"',
    ],
)
def test_the_sql_rule_bites_outside_the_store_and_in_tables(tmp_path: Path, text: str) -> None:
    for name in ("core/turns/views/planted.py", "core/turns/tables/planted.py", "store/sqlite.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert source.stray_sql(tmp_path) == [
        "core/turns/tables/planted.py:1",
        "core/turns/views/planted.py:1",
    ]


def test_the_sql_rule_leaves_prose_alone(tmp_path: Path) -> None:
    (tmp_path / "prose.py").write_text('"""Select rows from a table."""\nX = "Select a session to resume"\n')
    assert source.stray_sql(tmp_path) == []
