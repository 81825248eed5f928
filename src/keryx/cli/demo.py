"""``keryx serve --demo``: a gateway on sample conversations.

Nothing of the owner's is read or written: neither configuration nor data, and no platform is connected. All of it lies
in a folder that is made for this run and goes with it.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Final

from keryx.agents.model.offline import MODEL, missing
from keryx.cli.running import serve
from keryx.clock import SystemClock
from keryx.config import Configuration
from keryx.config.setting import HOME_VARIABLE
from keryx.config_load import load_config, set_value
from keryx.config_load.folders import PROJECT_FILE
from keryx.demo.filling import fill_demo

TOLD: Final = """\
This is a demo: sample conversations in {folder}, gone when it ends.
{answers}
Look around from another terminal: KERYX_HOME={folder} keryx chat --resume "Trip to Rome\""""
BY_MODEL: Final = (
    f"{MODEL} answers: a real model, but a very small one, for trying out and never for judging."
)
BY_GUIDE: Final = (
    "The built-in guide answers; `keryx offline install` brings a small model that needs no key."
)


def serve_demo() -> int:
    """Make the demo, run a gateway on it until Ctrl-C or SIGTERM, and return its exit code."""
    with tempfile.TemporaryDirectory(prefix="keryx-demo-") as folder:
        model = None if missing() else MODEL
        configuration = make_demo(Path(folder), model=model)
        told = TOLD.format(folder=folder, answers=BY_MODEL if model else BY_GUIDE)
        for line in told.splitlines():
            print(f"keryx: {line}", file=sys.stderr, flush=True)
        return serve(configuration)


def make_demo(folder: Path, *, model: str | None) -> Configuration:
    """Fill a new store in ``folder``, which then is a ``KERYX_HOME``, and return its configuration.

    ``model`` answers there, or the guide.
    """
    environ = {HOME_VARIABLE: str(folder)}
    # The nearest project's file counts, and this one says nothing: none further up is read.
    (folder / PROJECT_FILE).touch()
    configuration = load_config(environ, folder)
    if model is not None:
        configuration = set_value("model", model, environ=environ, cwd=folder)
    configuration.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    asyncio.run(fill_demo(configuration.database, now=SystemClock().now()))
    return configuration
