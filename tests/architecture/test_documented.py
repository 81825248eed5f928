"""Every command is documented, and the repository names no host that serves packages."""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from keryx.cli.commands import app
from tests.architecture.reference import PAGE, page
from tests.architecture.source import PACKAGE, ROOT

REFERENCE = ROOT / "docs" / "reference"
GENERIC = {"rules.py", "settings.py", "commands.py", "plugin.py", "toolset.py"}
"""Names of files that several folders have."""


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


def test_the_page_of_transactions_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(PACKAGE), "run scripts/reference"


def test_the_files_that_the_guides_for_contributors_name_exist() -> None:
    for page_name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md", "docs/testing.md"):
        text = (ROOT / page_name).read_text(encoding="utf-8")
        named = re.findall(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|sql|md|toml))`", text)
        places = (ROOT, PACKAGE, ROOT / "tests")
        missing = [name for name in named if not any((place / name).exists() for place in places)]
        assert set(missing) <= GENERIC, page_name


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
