"""The page ``docs/reference/transactions.md``, made from the docstrings of the transactions.

``scripts/reference`` writes it; a test compares it, so that a change of a transaction shows in a review.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import PACKAGE, ROOT, modules

PAGE = ROOT / "docs" / "reference" / "transactions.md"
HEAD = """# Transactions

Every state change of Keryx, by subject: reading these is reading the system. Each is a function `f(tx, …)` in
`src/keryx/core/<subject>/transactions`. Written by `scripts/reference` from the docstrings; do not edit.
"""


def page(package: Path) -> str:
    """Return the page for the transactions of a package."""
    text = HEAD
    subject = ""
    for module_subject, name, lines in _transactions(package):
        if module_subject != subject:
            subject = module_subject
            text += f"\n## {subject}\n\n| transaction | module | what it does |\n| --- | --- | --- |\n"
        for function, line in lines:
            text += f"| `{function}` | `{name}` | {line} |\n"
    return text


def _transactions(package: Path) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield each module with transactions: its subject, its name, and the first line about each transaction."""
    for module in modules(package / "core"):
        subject, _, rest = module.name.removesuffix(".py").partition("/")
        if rest.split("/")[0] != "transactions":
            continue
        found = [
            (
                node.name,
                (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|"),
            )
            for node in module.tree.body
            if isinstance(node, ast.FunctionDef) and _is_transaction(node)
        ]
        if found:
            yield subject, rest, found


def _is_transaction(function: ast.FunctionDef) -> bool:
    """Say whether this is a public function that takes a ``Tx`` first, and is not the handler of a command."""
    annotations = [ast.unparse(each.annotation) for each in function.args.args if each.annotation is not None]
    return (
        not function.name.startswith("_")
        and annotations[:1] == ["Tx"]
        and "CommandContext" not in annotations
    )


if __name__ == "__main__":
    PAGE.write_text(page(PACKAGE), encoding="utf-8")
