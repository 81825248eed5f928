"""Print the sizes of the source: ``python -m tests.architecture.shape [package folder]``."""

import sys
from collections import Counter
from pathlib import Path

from tests.architecture.source import PACKAGE, modules

FOLDER_MODULES_MAX = 20


def folder_sizes(package: Path) -> Counter[str]:
    """Return how many modules each folder has."""
    return Counter(
        path.parent.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if path.name != "__init__.py"
    )


def crowded(package: Path) -> list[str]:
    """Name the folders with too many modules."""
    return [
        f"{folder}: {count} modules; two subjects share it"
        for folder, count in sorted(folder_sizes(package).items())
        if count > FOLDER_MODULES_MAX
    ]


def function_lengths(package: Path) -> list[int]:
    """Return the length of every function, the shortest first."""
    return sorted(
        (function.end_lineno or function.lineno) - function.lineno + 1
        for module in modules(package)
        for function in module.functions()
    )


def source_lines(package: Path) -> int:
    """Count the lines of Python and SQL, without ``testing``, migrations and schema snapshots."""
    return sum(
        len(path.read_text(encoding="utf-8").splitlines())
        for path in package.rglob("*")
        if path.suffix in (".py", ".sql")
        and "testing" not in path.relative_to(package).parts
        and "migrations" not in path.parts
        and not path.name.startswith("schema.")
    )


def main(package: Path) -> None:
    """Print the figures."""
    lengths = function_lengths(package)
    sizes = folder_sizes(package)
    longest = max((module.text.count("\n"), module.name) for module in modules(package))
    rows = {
        "source lines (Python and SQL, without testing)": source_lines(package),
        "modules": sum(sizes.values()),
        "largest folder": sizes.most_common(1)[0],
        "longest module": longest,
        "functions": len(lengths),
        "functions, 95th percentile": lengths[int(len(lengths) * 0.95)],
        "functions, longest": lengths[-1],
    }
    for name, value in rows.items():
        sys.stdout.write(f"{name}: {value}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else PACKAGE)
