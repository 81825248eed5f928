"""The ``keryx`` command.

``--version`` is answered before anything else is loaded: scripts and prompts ask for it often. Keep this
module's own imports to the standard library's cheapest.
"""

import importlib
import sys

import keryx


def main() -> None:
    """Run the command line and leave with its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"keryx {keryx.__version__}")
        return
    # By name, so that the fast path above does not load click.
    importlib.import_module("keryx.cli.commands").app(prog_name="keryx")
