"""A gateway for torture runs: ``keryx serve`` with the torture agent.

Run ``python -m keryx.testing.torture.node LOG``; the configuration comes from the environment as for any gateway. Its
one line of output tells that it is ready, and its lease holder name.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from keryx.agents.plugin import Answerer
from keryx.app import System, serve
from keryx.config import Answering, Configuration
from keryx.config_load import load_config
from keryx.gateway.gateway import Gateway
from keryx.testing.torture.agent import NoteTool, TortureAgent
from keryx.testing.torture.effects import EffectLog

READY = "ready"


async def run_node(configuration: Configuration, effect_log: EffectLog) -> None:
    """Run a gateway until it receives SIGTERM."""

    def ready(system: System, _gateway: Gateway) -> None:
        sys.stdout.write(f"{READY} {system.runtime.holder}\n")
        sys.stdout.flush()

    tools = (NoteTool(effect_log, "once"), NoteTool(effect_log, "pure"))
    who = Answering(default="the agent under torture", takes_models=False)
    answering = Answerer(agent=TortureAgent(effect_log), tools=tools, who=who)
    await serve(configuration, ready=ready, answering=answering)


def _die_with_parent() -> None:
    """End this process when the parent, which holds our input open, has ended."""
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_die_with_parent, daemon=True).start()
    settings = load_config()
    logging.basicConfig(
        level=settings.log.level.upper(), format="%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s"
    )
    asyncio.run(run_node(settings, EffectLog(Path(sys.argv[1]))))
