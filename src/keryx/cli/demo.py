"""``keryx serve --demo``: a gateway on sample conversations.

The demo reads and writes none of the owner's configuration and data, and connects no platform. All its files are in a
temporary folder, which is deleted at the end.
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
from keryx.config_load.files import PROJECT_FILE
from keryx.demo.filling import fill_demo

NOTICE: Final = """\
This is a demo: sample conversations in {folder}, deleted at the end.
{agent}
To look around, enter in another terminal: KERYX_HOME={folder} keryx chat --resume "Trip to Rome\""""
MODEL_ANSWERS: Final = f"{MODEL} answers: a real but very small model, only for a first try."
GUIDE_ANSWERS: Final = (
    "The built-in guide answers; `keryx offline install` installs a small model that needs no key."
)


def serve_demo() -> int:
    """Make the demo, run a gateway on it until Ctrl-C or SIGTERM, and return its exit code."""
    with tempfile.TemporaryDirectory(prefix="keryx-demo-") as folder:
        model = None if missing() else MODEL
        configuration = make_demo(Path(folder), model=model)
        notice = NOTICE.format(folder=folder, agent=MODEL_ANSWERS if model else GUIDE_ANSWERS)
        for line in notice.splitlines():
            print(f"keryx: {line}", file=sys.stderr, flush=True)
        return serve(configuration)


def make_demo(folder: Path, *, model: str | None) -> Configuration:
    """Fill a new store in ``folder``, a ``KERYX_HOME``, and return its configuration.

    ``model`` answers there; without a model, the guide does.
    """
    environ = {HOME_VARIABLE: str(folder)}
    # Only the nearest project file is read. This empty one hides any in a parent folder.
    (folder / PROJECT_FILE).touch()
    configuration = load_config(environ, folder)
    if model is not None:
        configuration = set_value("model", model, environ=environ, cwd=folder)
    configuration.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    asyncio.run(fill_demo(configuration.database, now=SystemClock().now()))
    return configuration
