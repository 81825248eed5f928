"""Our own source as data: what the rules are checked against.

Each rule is a function of a package's directory, so that a test can show that it bites on a planted copy.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "keryx"

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 6

Function = ast.FunctionDef | ast.AsyncFunctionDef

_SQL = re.compile(
    r"\s*(SELECT\b.+\bFROM\b|INSERT\s+INTO\b|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\b|WITH\s+\w+\s+AS\b"
    r"|(CREATE|ALTER|DROP)\s+(TABLE|INDEX|VIEW|TRIGGER|DATABASE)\b|PRAGMA\s)",
    re.IGNORECASE | re.DOTALL,
)
_SPEAKS_SQL = ("store/", "testing/postgres.py")
"""Where SQL may stand in Python: the drivers' own needs (pragmas, savepoints), and making test databases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One source file."""

    name: str
    text: str
    tree: ast.Module

    def functions(self) -> Iterator[Function]:
        """Yield every function and method, inner ones included."""
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield node


def modules(package: Path) -> Iterator[Module]:
    """Yield the package's modules, named by their path within it."""
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield Module(name=path.relative_to(package).as_posix(), text=text, tree=ast.parse(text))


def oversized(package: Path) -> list[str]:
    """Say which modules and functions are too long or take too much."""
    found = []
    for module in modules(package):
        lines = module.text.count("\n")
        if lines > MODULE_LINES_MAX:
            found.append(f"{module.name}: {lines} lines; split it by noun")
        for function in module.functions():
            at = f"{module.name}:{function.lineno} {function.name}"
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            if length > FUNCTION_LINES_MAX:
                found.append(f"{at}: {length} lines")
            if len(parameters(function)) > PARAMETERS_MAX:
                found.append(f"{at}: {len(parameters(function))} parameters; give it a value that holds them")
    return found


def parameters(function: Function) -> list[str]:
    """Name the parameters a caller thinks about."""
    arguments = function.args
    names = [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def without_docstring(package: Path) -> list[str]:
    """Name the modules that do not say what they are."""
    return [module.name for module in modules(package) if not ast.get_docstring(module.tree)]


def stray_sql(package: Path) -> list[str]:
    """Say where there is SQL in Python outside the store: modules of tables and views only map rows."""
    found = []
    for module in modules(package):
        if module.name.startswith(_SPEAKS_SQL):
            continue
        found += [f"{module.name}:{line}" for line, text in strings(module.tree) if _SQL.match(text)]
    return found


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and value of every string that is not a docstring."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value
