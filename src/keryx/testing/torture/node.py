"""A gateway to be tortured: ``keryx serve`` as it is, with an agent that is made for it.

Run as ``python -m keryx.testing.torture.node BOOK``; the configuration comes from the environment as for any gateway.
Its one line of output says that it is ready, and under which name.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from keryx.app import Answering, System, serve
from keryx.config import Configuration
from keryx.config_load import load_config
from keryx.gateway.supervisor import Gateway
from keryx.testing.torture.agent import NoteTool, TortureAgent
from keryx.testing.torture.effects import EffectBook

READY = "ready"


async def run_node(configuration: Configuration, book: EffectBook) -> None:
    """Run a gateway until it is asked to end."""

    def ready(system: System, _gateway: Gateway) -> None:
        sys.stdout.write(f"{READY} {system.desk.holder}\n")
        sys.stdout.flush()

    tools = (NoteTool(book, "once"), NoteTool(book, "pure"))
    answering = Answering(agent=TortureAgent(book), tools=tools, who="the agent under torture")
    await serve(configuration, ready=ready, answering=answering)


def _die_with_parent() -> None:
    """Whoever tortures holds our input open: when it ends, nobody would ever end us."""
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_die_with_parent, daemon=True).start()
    settings = load_config()
    logging.basicConfig(
        level=settings.log.level.upper(), format="%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s"
    )
    asyncio.run(run_node(settings, EffectBook(Path(sys.argv[1]))))
