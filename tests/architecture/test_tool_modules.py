"""The module of a tool is named after the tool, so that the name a model calls leads to the file."""

import ast
import inspect
import pkgutil
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import keryx.tools
from keryx.tools.base_tool import BaseTool
from tests.architecture.source import PACKAGE, Module, modules

TOOLS = PACKAGE / "tools"


def tool_names(module: Module) -> Iterator[str]:
    """Yield the value of each class attribute ``name``; a constant of another module is looked up there."""
    origins = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in module.tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    for node in ast.walk(module.tree):
        for statement in node.body if isinstance(node, ast.ClassDef) else ():
            match statement:
                case (
                    ast.Assign(targets=[ast.Name("name")], value=ast.expr() as value)
                    | ast.AnnAssign(target=ast.Name("name"), value=ast.expr() as value)
                ):
                    if isinstance(value, ast.Name):
                        origin, constant = origins[value.id]
                        yield str(getattr(import_module(origin), constant))
                    else:
                        yield str(ast.literal_eval(value))
                case _:
                    pass


def misnamed(tools: Path) -> list[str]:
    """Name the tools whose module has another name."""
    return [
        f"{module.name}: the tool {name} belongs in {name}.py"
        for module in modules(tools)
        for name in tool_names(module)
        if Path(module.name).stem != name
    ]


def offered() -> set[str]:
    """Return the names of the tools that the classes below ``keryx.tools`` can offer."""
    found = [import_module(each.name) for each in pkgutil.walk_packages(keryx.tools.__path__, "keryx.tools.")]
    classes = {kind for module in found for _, kind in inspect.getmembers(module, inspect.isclass)}
    return {kind.name for kind in classes if issubclass(kind, BaseTool) and hasattr(kind, "name")}


def test_every_tool_is_in_a_module_of_its_name() -> None:
    assert misnamed(TOOLS) == []


def test_the_rule_sees_every_tool_that_is_offered() -> None:
    assert {name for module in modules(TOOLS) for name in tool_names(module)} == offered()
    assert {"read_file", "ask_user", "terminal", "fetch_url"} <= offered()


@pytest.mark.parametrize(
    ("path", "planted", "found"),
    [
        ("files/read_file.py", 'name = "cat"', "cat"),
        ("files/read_file.py", 'name: Final = "cat"', "cat"),
        ("keryx/send_message.py", "name = DELEGATE", "delegate"),
    ],
)
def test_a_planted_tool_in_a_module_of_another_name_is_found(
    tmp_path: Path, path: str, planted: str, found: str
) -> None:
    copy = shutil.copytree(TOOLS, tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / path).open("a") as module:
        module.write("\n\nfrom keryx.core.turns.rules.delegation import DELEGATE\n")
        module.write(f"\n\nclass Planted(BaseTool):\n    {planted}\n")
    assert misnamed(copy) == [f"{path}: the tool {found} belongs in {found}.py"]
