"""What people can call is documented, and the repository names no host that serves packages."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

import keryx
from keryx.cli.commands import app
from tests.architecture.source import ROOT

REFERENCE = ROOT / "docs" / "reference"


def commands(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """Yield every command's words and its help."""
    yield path, command.help or ""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, f"{path} {name}")


def test_every_command_is_documented_and_shows_an_example() -> None:
    text = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    found = list(commands(app, "keryx"))
    assert [path for path, _ in found if f"## `{path}`" not in text] == []
    assert [path for path, told in found if "Example:" not in told] == []


def public_names() -> Iterator[str]:
    """Yield what ``keryx`` offers, and the public members of the classes among it."""
    for name in keryx.__all__:
        yield name
        offered = getattr(keryx, name)
        if inspect.isclass(offered):
            yield from (f"{name}.{member}" for member in vars(offered) if not member.startswith("_"))


def test_every_public_name_is_documented() -> None:
    text = (REFERENCE / "library.md").read_text(encoding="utf-8")
    missing = [name for name in public_names() if not re.search(rf"\b{name.rpartition('.')[2]}\b", text)]
    assert missing == []


# Put together here, so that this file does not name what it forbids.
REGISTRY = re.compile(
    "|".join(
        ["pypi" + r"\.org", "python" + "hosted", "npm" + r"js\.", "(extra-)?index" + "-url", "/simp" + "le/"]
    )
)
SKIPPED = {".git", ".venv", ".bench", "__pycache__", "node_modules", "build", "dist"}


def text_files(directory: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(directory.iterdir()):
        if path.name in SKIPPED or path.name.endswith("_cache") or path.name.startswith(".coverage"):
            continue
        if path.is_dir():
            yield from text_files(path)
        else:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8", errors="replace")


def test_no_registry_host_is_named() -> None:
    assert [name for name, text in text_files(ROOT) if REGISTRY.search(text)] == []


def test_the_constraints_pin_exact_versions_and_no_address() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[a-z0-9.-]+==[0-9a-z.]+( ; [^:/@]+)?", line)] == []
