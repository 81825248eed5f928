"""The coverage gate lets nothing of the ground through, and a tenth of the rest."""

from typing import Any

from tests.coverage_gate import shortfalls


def file(
    *,
    covered: int = 10,
    missing: int = 0,
    lines: list[int] | None = None,
    branches: list[list[int]] | None = None,
) -> dict[str, Any]:
    return {
        "missing_lines": lines or [],
        "missing_branches": branches or [],
        "summary": {
            "covered_lines": covered,
            "missing_lines": missing,
            "covered_branches": 0,
            "missing_branches": 0,
        },
    }


def test_a_missed_line_and_a_missed_branch_of_the_ground_are_named() -> None:
    files = {
        "src/keryx/core/turns/rules/reset.py": file(lines=[4, 7]),
        "src/keryx/store/sqlite.py": file(branches=[[3, 0]]),
        "src/keryx/store/unseen.py": file(covered=0, lines=[1, 2], branches=[[1, 2]]),
        "src/keryx/core/media/transactions.py": file(),
    }
    assert list(shortfalls(files)) == [
        "src/keryx/core/turns/rules/reset.py: no test runs line 4, 7",
        "src/keryx/store/sqlite.py: no test takes branch 3->exit",
        "src/keryx/store/unseen.py: no test loads it",
    ]


def test_other_parts_are_judged_as_a_whole_by_nine_tenths() -> None:
    files = {
        "src/keryx/core/turns/views/a.py": file(covered=8, missing=2),
        "src/keryx/core/turns/views/b.py": file(covered=10),
        "src/keryx/library.py": file(covered=89, missing=11),
    }
    assert list(shortfalls(files)) == ["library: 89.0 % covered, at least 90 % are asked for"]


def test_an_empty_module_needs_no_test() -> None:
    assert list(shortfalls({"src/keryx/cli/__init__.py": file(covered=0)})) == []
