"""No modules import each other in a circle, and within a layer no subjects do."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

LAYERS = ("rules", "tables", "views", "transactions")
Imports = Mapping[str, frozenset[str]]


def imports() -> Imports:
    """Return what each module of Keryx imports of Keryx."""
    graph = grimp.build_graph("keryx", cache_dir=None)
    return {module: frozenset(graph.find_modules_directly_imported_by(module)) for module in graph.modules}


def cycle(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the nodes of a circle, or nothing."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def between_subjects(known: Imports, layer: str) -> dict[str, set[str]]:
    """Return which subjects the modules of a layer import within the same layer."""

    def subject_of(module: str) -> str | None:
        parts = module.split(".")
        return parts[2] if parts[1:2] == ["core"] and parts[3:4] == [layer] else None

    edges: dict[str, set[str]] = {}
    for module, imported in known.items():
        importer = subject_of(module)
        if importer is not None:
            others = {subject for each in imported if (subject := subject_of(each)) not in (None, importer)}
            edges.setdefault(importer, set()).update(str(each) for each in others)
    return edges


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert cycle(imports()) == []


@pytest.mark.parametrize("layer", LAYERS)
def test_no_subjects_import_each_other_within_a_layer(layer: str) -> None:
    edges = between_subjects(imports(), layer)
    assert edges
    assert cycle(edges) == []


def test_a_planted_circle_is_found() -> None:
    known = {
        "keryx.core.turns.rules.turn": frozenset({"keryx.core.people.rules.person"}),
        "keryx.core.people.rules": frozenset({"keryx.core.turns.rules.lease"}),
        "keryx.core.people.tables": frozenset({"keryx.core.turns.tables"}),
        "keryx.core.turns.tables.turns": frozenset({"keryx.core.people.rules.person"}),
    }
    assert set(cycle(between_subjects(known, "rules"))) == {"people", "turns"}
    assert cycle(between_subjects(known, "tables")) == []
