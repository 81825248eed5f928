"""A plug-in is one folder behind an entry point, which nothing outside of the folder knows by name."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT, modules, strings
from tests.architecture.test_cycles import imports

MAY_IMPORT = {
    ("keryx.cli", "keryx.platforms.terminal"): "the command line reads the keyboard for the terminal",
    ("keryx.cli.demo", "keryx.agents.model"): "the demo uses the offline model where that is installed",
    ("keryx.testing", "keryx.platforms.webhook"): "the torture speaks to gateways as a program does",
}
MAY_NAME = {
    "cli/offline.py": "installs the weights of the offline model",
}


def entry_points() -> dict[str, dict[str, str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, dict[str, str]] = project["entry-points"]
    return found


def folders() -> set[str]:
    """Return the package of each plug-in of ours."""
    values = [value for group in entry_points().values() for value in group.values()]
    return {value.partition(":")[0].rpartition(".")[0] for value in values}


def lies_in(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def stray_imports(known: Mapping[str, AbstractSet[str]], plugins: AbstractSet[str]) -> Iterator[str]:
    """Yield the imports of a plug-in's modules from outside of its folder, without those that are allowed."""
    for module, imported in known.items():
        for package in plugins:
            is_allowed = lies_in(module, package) or any(
                lies_in(module, importer) and package == plugin for importer, plugin in MAY_IMPORT
            )
            for each in imported:
                if lies_in(each, package) and not is_allowed:
                    yield f"{module} -> {each}"


def stray_names(package: Path, plugins: AbstractSet[str]) -> Iterator[str]:
    """Yield the modules that name a plug-in of ours in a text, as one does to import it later."""
    named = re.compile("|".join(rf"{re.escape(plugin)}(?![\w])" for plugin in sorted(plugins)))
    for module in modules(package):
        own = "keryx." + module.name.removesuffix(".py").replace("/", ".")
        for line, text in strings(module.tree):
            found = named.match(text)
            if found and not lies_in(own, found[0]) and module.name not in MAY_NAME:
                yield f"{module.name}:{line} names {found[0]}"


def test_every_plug_in_of_ours_is_a_folder_of_its_own() -> None:
    declared = [value for group in entry_points().values() for value in group.values()]
    assert len(folders()) == len(declared)
    assert [value for value in declared if not value.endswith(".plugin:PLUGIN")] == []


def test_nothing_outside_of_its_folder_imports_a_plug_in() -> None:
    assert list(stray_imports(imports(), folders())) == []


def test_nothing_outside_of_its_folder_names_a_plug_in() -> None:
    assert list(stray_names(PACKAGE, folders())) == []


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("keryx.app", "keryx.platforms.webhook.plugin"),
        ("keryx.platforms.webhook.adapter", "keryx.platforms.terminal.screen"),
        ("keryx.tools.shell.terminal", "keryx.tools.files"),
        ("keryx.cli.demo", "keryx.platforms.webhook.wire"),
    ],
)
def test_a_planted_import_is_found(module: str, imported: str) -> None:
    known = {module: frozenset({imported, "keryx.platforms.adapter", "keryx.tools.tool"})}
    assert list(stray_imports(known, folders())) == [f"{module} -> {imported}"]


def test_a_planted_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text('import_module("keryx.agents.acp.agent")\n')
    assert list(stray_names(tmp_path, folders())) == ["app.py:1 names keryx.agents.acp"]
