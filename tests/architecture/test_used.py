"""Every public name of a module is used by the source itself: what only tests call is deleted or put to use.

A name counts as used if another module imports and uses it, reaches it through its module (also one that is imported
lazily, by its name in a string), or if its own module uses it outside its definition.
"""

import ast
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import keryx
from tests.architecture.source import PACKAGE, ROOT

Name = tuple[str, str]
"""A module and a name in it."""

SHIPPED = "keryx.testing"
"""The doubles, the simulator and the contracts that tests of Keryx and of plug-ins use."""

LATER = "A later issue calls it: "
EXCEPTIONS: Mapping[str, str] = {
    "keryx.backends.local.supervisor.main.main": "start_supervisor imports it without the package keryx.",
    "keryx.integrations.openai_agents.KeryxSession": "Programs import it from here.",
    "keryx.core.conversations.tables.branches.list_links": LATER + "the page of a session shows its lineage.",
    "keryx.core.conversations.tables.drafts.find_mark": LATER + "lists show what a person has not read.",
    "keryx.core.conversations.transactions.change_session.set_model_settings": LATER
    + "settings of a session.",
    "keryx.core.conversations.transactions.change_session.set_workspace": LATER + "settings of a session.",
    "keryx.core.conversations.transactions.manage_project.change_project": LATER + "settings of a project.",
    "keryx.core.conversations.tables.feed.end": LATER + "where a new client of the feed begins.",
    "keryx.core.conversations.views.feed.list_of_session": LATER + "a client of the feed fetches a gap.",
    "keryx.core.media.transactions.collect_blobs": LATER + "upkeep deletes blobs without references.",
    "keryx.core.people.transactions.pair_stranger.expire_pairings": LATER + "upkeep ends old pairings.",
    "keryx.core.schedules.tables.list_fires": LATER + "the page of a schedule shows its fires.",
    "keryx.core.turns.views.turn.show_prompt": LATER + "the page of a turn shows its prompt.",
    "keryx.core.upkeep.tables.list_malformed": LATER + "the doctor shows malformed updates.",
    "keryx.core.upkeep.transactions.purge_session.empty_bin": LATER + "upkeep empties the bin.",
    "keryx.core.upkeep.transactions.purge_session.prune": LATER + "upkeep prunes sessions.",
    "keryx.core.upkeep.transactions.purge_session.purge_session": LATER + "a person purges a session.",
    "keryx.gateway.runtime.metrics.render": LATER + "the API serves the metrics.",
}
"""Public names that nothing in the source uses, each with the reason why it stays."""


@dataclass(slots=True)
class Source:
    """What a module defines, what it imports under which name, and which names and attributes it uses."""

    defined: dict[str, ast.stmt] = field(default_factory=dict)
    imported: dict[str, Name] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    reached: set[tuple[str, str]] = field(default_factory=set)
    lazily: set[str] = field(default_factory=set)
    """Modules that are named in strings, because they are imported when they are first needed."""
    words: set[str] = field(default_factory=set)
    """Every attribute and every string: what may be taken from a module that is imported lazily."""


def read(package: Path, root: str = "keryx") -> dict[str, Source]:
    """Return every module of a package by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = [root, *path.relative_to(package).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = _absolute(ast.parse(path.read_text(encoding="utf-8")), package=parts[:-1])
    return {name: _source(tree, frozenset(found)) for name, tree in found.items()}


def _absolute(tree: ast.Module, *, package: Sequence[str]) -> ast.Module:
    """Make the imports of a module that stands alone absolute, as the process supervisor's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            node.module = ".".join(
                [*package[: len(package) - node.level + 1], *([node.module] if node.module else [])]
            )
            node.level = 0
    return tree


def _source(tree: ast.Module, known: frozenset[str]) -> Source:
    source = Source()
    for statement in tree.body:
        for name in _names_defined(statement):
            if not name.startswith("_") and not _is_registered(statement):
                source.defined[name] = statement
        source.used |= set(_names_used(statement))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            _note_import(source, node, known)
        elif isinstance(node, ast.Attribute):
            source.words.add(node.attr)
            if isinstance(node.value, ast.Name):
                source.reached.add((node.value.id, node.attr))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            source.words.add(node.value)
    source.lazily = source.words & known
    return source


def _note_import(source: Source, node: ast.Import | ast.ImportFrom, known: frozenset[str]) -> None:
    for alias in node.names:
        here = alias.asname or alias.name
        if isinstance(node, ast.Import):
            source.modules[here] = alias.name
        elif f"{node.module}.{alias.name}" in known:
            source.modules[here] = f"{node.module}.{alias.name}"
        else:
            source.imported[here] = (str(node.module), alias.name)


def _names_defined(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            pass


def _is_registered(statement: ast.stmt) -> bool:
    """Say whether a decorator hands a function to others: click's commands."""
    decorators = getattr(statement, "decorator_list", ())
    calls = (each.func if isinstance(each, ast.Call) else each for each in decorators)
    return any(isinstance(each, ast.Attribute) and each.attr in ("command", "group") for each in calls)


def _names_used(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement uses, but those it defines itself; annotations in quotes count."""
    own = set(_names_defined(statement))
    if "__all__" in own:
        return
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used = {name}
            case ast.arg(annotation=ast.expr() as told) | ast.AnnAssign(annotation=told):
                used = _names_quoted(told)
            case (
                ast.FunctionDef(returns=ast.expr() as told) | ast.AsyncFunctionDef(returns=ast.expr() as told)
            ):
                used = _names_quoted(told)
            case _:
                continue
        yield from used - own


def _names_quoted(annotation: ast.expr) -> set[str]:
    """Return the names in the parts of an annotation that stand in quotes."""
    found = set()
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                quoted = ast.parse(node.value, mode="eval")
            except SyntaxError:
                continue  # a literal, not a type
            found |= {each.id for each in ast.walk(quoted) if isinstance(each, ast.Name)}
    return found


def unused(sources: Mapping[str, Source]) -> list[str]:
    """Return the public names that no module uses, as ``module.name``."""
    needed: set[Name] = set()
    for module, source in sources.items():
        needed |= {(module, name) for name in source.used & source.defined.keys()}
        needed |= {at for here, at in source.imported.items() if here in source.used}
        needed |= {(source.modules[owner], name) for owner, name in source.reached if owner in source.modules}
        needed |= {(lazy, name) for lazy in source.lazily for name in source.words}
    todo = list(needed)
    while todo:  # what is imported from a module that only passes it on
        module, name = todo.pop()
        passed_on = sources[module].imported.get(name) if module in sources else None
        if passed_on is not None and passed_on not in needed:
            needed.add(passed_on)
            todo.append(passed_on)
    return sorted(
        f"{module}.{name}"
        for module, source in sources.items()
        for name in source.defined
        if (module, name) not in needed and not name.startswith("__")
    )


def offered() -> set[str]:
    """Return the names that programs and entry points reach."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    values = [getattr(keryx, name) for name in keryx.__all__]
    return {point.replace(":", ".") for group in groups for point in group.values()} | {
        f"{value.__module__}.{value.__qualname__}" for value in values if hasattr(value, "__qualname__")
    }


def test_every_public_name_is_used_by_the_source() -> None:
    found = {name for name in unused(read(PACKAGE)) if not name.startswith(f"{SHIPPED}.")} - offered()
    assert sorted(found - EXCEPTIONS.keys()) == []
    assert sorted(EXCEPTIONS.keys() - found) == [], "these are used now: take them off the list"


def test_a_planted_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(
        "LIMIT = 1\nSPARE = 2\n__all__ = ['due', 'spare']\n"
        "def due(): return LIMIT\ndef spare(): return spare()\nclass Kept: ...\nclass Quoted: ...\n"
        "def told(quoted: 'Quoted | None'): ...\n@app.command()\ndef command(): ...\ndef _private(): ...\n"
    )
    (tmp_path / "passed.py").write_text("from keryx.rules import due\n__all__ = ['due']\n")
    (tmp_path / "caller.py").write_text(
        "from keryx import rules\nfrom keryx.passed import due\ndue()\nprint(rules.Kept, rules.told)\n"
    )
    assert unused(read(tmp_path)) == ["keryx.rules.SPARE", "keryx.rules.spare"]
