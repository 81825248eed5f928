"""The commands that need the store: chat, print an answer, serve, show nodes. Each returns its exit code."""

import asyncio
import importlib
import json
import signal
import sys

from keryx.agents.plugin import AgentPlugin
from keryx.app import System, open_system
from keryx.app import serve as run_gateway
from keryx.cli.log import configure_logging
from keryx.clock import SECOND, SystemClock
from keryx.config import Configuration
from keryx.core.upkeep.views.nodes import Nodes, show_nodes
from keryx.gateway.gateway import Account, Gateway

HISTORY = "history"
"""The file of typed lines, in the profile's data folder."""


def chat(configuration: Configuration, *, resume: str | None) -> int:
    """Chat in this terminal until the person leaves."""
    _warn_of_unused_settings(configuration)
    run_chat = importlib.import_module("keryx.cli.chat.chat").chat
    configuration.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Standard error is the screen of the chat.
    log = configuration.log
    configure_logging(log.level, log.format, file=configuration.data_dir / "chat.log")

    async def run() -> int:
        async with open_system(configuration) as system:
            code: int = await run_chat(
                system.runtime,
                system.agent,
                system.toolbox,
                agent_name=system.agent_name,
                resume=resume,
                history=configuration.data_dir / HISTORY,
            )
            return code

    return asyncio.run(run())


def print_answer(configuration: Configuration, *, text: str, resume: str | None) -> int:
    """Print the answer to one question."""
    _warn_of_unused_settings(configuration)
    ask = importlib.import_module("keryx.cli.chat.print_answer").print_answer
    configure_logging("error", configuration.log.format)

    async def run() -> int:
        async with open_system(configuration, is_for_one_turn=True) as system:
            code: int = await ask(system.runtime, system.agent, system.toolbox, text, resume=resume)
            return code

    try:
        return asyncio.run(run())
    except KeyboardInterrupt:
        return 128 + signal.SIGINT  # before the question was asked


def serve(configuration: Configuration) -> int:
    """Run a gateway until Ctrl-C or SIGTERM, and return when its turns are finished or handed back."""
    _warn_of_unused_settings(configuration)
    configure_logging(configuration.log.level, configuration.log.format)

    def ready(system: System, gateway: Gateway) -> None:
        accounts = ", ".join(map(format_account, gateway.accounts)) or "no platform is set up"
        print(
            f"keryx: ready as {system.runtime.holder}, {accounts}. Ctrl-C ends.", file=sys.stderr, flush=True
        )

    asyncio.run(run_gateway(configuration, ready=ready))
    return 0


def format_account(account: Account) -> str:
    """Return an account's name and, if it is not connected, the reason."""
    return account.name if account.trouble is None else f"{account.name} (not connected: {account.trouble})"


def nodes(configuration: Configuration, *, as_json: bool) -> int:
    """Print the processes that use the store, as text or as JSON."""

    async def look() -> Nodes:
        async with open_system(configuration) as system:
            return await system.runtime.database.read(show_nodes)

    shown = asyncio.run(look())
    print(_as_json(shown) if as_json else _as_text(shown))
    return 0


def _warn_of_unused_settings(configuration: Configuration) -> None:
    """Warn of agents whose settings have no effect because another agent answers."""
    plugins = configuration.plugins
    for name, plugin in plugins.agents.items():
        assert isinstance(plugin, AgentPlugin)
        unused = plugin.unused(configuration) if name != plugins.agent else None
        if unused is not None:
            print(f"keryx: agent.{plugins.agent} answers; {unused}.", file=sys.stderr)


def _as_text(shown: Nodes) -> str:
    if not shown.nodes:
        return "No process uses this store now. `keryx serve` runs a gateway."
    now = SystemClock().now()
    lines: list[str] = []
    for node in shown.nodes:
        state = "gone" if node.remaining <= 0 else f"since {(now - node.started_at) // SECOND} s"
        lines.append(f"{node.kind} {node.holder} (pid {node.pid} on {node.host}, {node.version}): {state}")
        accounts = ", ".join(each.name for each in shown.accounts if each.holder == node.holder)
        turns = ", ".join(each.session_id for each in shown.turns if each.holder == node.holder)
        lines.append(f"  accounts: {accounts or 'none'}; turns in: {turns or 'none'}")
    if shown.malformed:
        lines.append(f"{shown.malformed} malformed updates could not be read; the store keeps them.")
    return "\n".join(lines)


def _as_json(shown: Nodes) -> str:
    return json.dumps(
        {
            "nodes": [node._asdict() for node in shown.nodes],
            "accounts": [account._asdict() for account in shown.accounts],
            "turns": [turn._asdict() for turn in shown.turns],
            "malformed": shown.malformed,
        },
        indent=1,
    )
