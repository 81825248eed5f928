"""The public names as data: what ``keryx`` offers, what its stub tells type checkers, and what the reference documents.

Names and members are sets of strings, so that a test can compare them and plant a difference.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_type_hints

import keryx

_SPAN = re.compile(r"`([^`]+)`")
_IDENTIFIER = re.compile(r"[a-z_]\w*")

Names = dict[str, set[str]]
"""A public name, and the members of its class; for a function, its parameters."""


def offered() -> Names:
    """Return what ``keryx`` exports."""
    return {name: _members(getattr(keryx, name)) for name in keryx.__all__}


def _members(value: object) -> set[str]:
    if inspect.isfunction(value):
        return set(inspect.signature(value).parameters)
    if not inspect.isclass(value):
        return set()
    ours = [each for each in value.__mro__ if each.__module__.startswith("keryx")]
    names = {name for each in ours for name in (*vars(each), *inspect.get_annotations(each))}
    return {name for name in names if not name.startswith("_")}


def documented(reference: str) -> Names:
    """Return what the tables of the reference document.

    A row of a table headed `name` documents a name; one headed `call` a member of ``Keryx`` and of ``KeryxSync``; one
    headed `sync call` a member of ``KeryxSync`` alone.
    """
    names: Names = {"Keryx": set(), "KeryxSync": set()}
    for head, first, rest in _rows(reference):
        name, parameters = _call(first)
        if head == "name":
            names[name] = parameters or {span for span in _SPAN.findall(rest) if _IDENTIFIER.fullmatch(span)}
        elif head == "call":
            names["Keryx"].add(name)
            names["KeryxSync"].add(name)
        elif head == "sync call":
            names["KeryxSync"].add(name)
    return names


def documented_calls(reference: str) -> Names:
    """Return the parameters of each call of ``Keryx`` that the reference documents."""
    return dict(_call(first) for head, first, _ in _rows(reference) if head == "call")


def offered_calls() -> Names:
    """Return the parameters of each call of ``Keryx``."""
    members = {name: inspect.getattr_static(keryx.Keryx, name) for name in _members(keryx.Keryx)}
    return {
        name: set(inspect.signature(member).parameters) - {"self"} if inspect.isfunction(member) else set()
        for name, member in members.items()
    }


def _rows(reference: str) -> Iterator[tuple[str, str, str]]:
    """Yield the head of each table's first column, with the first and the second cell of each of its rows."""
    head = None
    for line in reference.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ", maxsplit=1)]
        if not line.startswith("|"):
            head = None
        elif head is None:
            head = cells[0]
        elif not line.startswith("| ---"):
            yield head, cells[0].strip("` "), cells[1]


def _call(text: str) -> tuple[str, set[str]]:
    """Return the name and the parameters of a call as it is documented."""
    if not text.endswith(")"):
        return text, set()
    [definition] = ast.parse(f"def {text}: ...").body
    assert isinstance(definition, ast.FunctionDef)
    arguments = definition.args
    named = [*arguments.args, *arguments.kwonlyargs, *([arguments.kwarg] if arguments.kwarg else [])]
    return definition.name, {each.arg for each in named}


def differences(*, offered: Names, documented: Names) -> list[str]:
    """Say how the two differ, both ways."""
    found = [f"{name} is not documented" for name in offered.keys() - documented.keys()]
    found += [f"{name} is documented and does not exist" for name in documented.keys() - offered.keys()]
    for name in offered.keys() & documented.keys():
        found += [f"{name}.{each} is not documented" for each in offered[name] - documented[name]]
        found += [
            f"{name}.{each} is documented and does not exist" for each in documented[name] - offered[name]
        ]
    return sorted(found)


def stubbed(stub: str) -> dict[str, str]:
    """Return the names that a stub lists for export, each with the module that it imports the name from."""
    tree = ast.parse(stub)
    imported = {
        alias.asname or alias.name: str(node.module)
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    [exported] = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return {name: imported.get(name, "") for name in exported}


def unexported(functions: Iterable[Any]) -> set[str]:
    """Name the classes of Keryx that the functions take or return, and that ``keryx`` does not export."""
    # JsonValue is defined by itself, and is no class.
    hints = [get_type_hints(function, localns={"JsonValue": object}) for function in functions]
    used = {each for named in hints for hint in named.values() for each in _types(hint)}
    exported = {getattr(keryx, name) for name in keryx.__all__ if inspect.isclass(getattr(keryx, name))}
    return {each.__qualname__ for each in used - exported if each.__module__.startswith("keryx")}


def _types(hint: Any) -> Iterator[type]:
    if isinstance(hint, type):
        yield hint
    for each in get_args(hint):
        yield from _types(each)
