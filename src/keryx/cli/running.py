"""What the commands that work on the store do, once the configuration is read; each returns its exit code."""

import asyncio
import importlib
import json
import logging
import signal
import sys

from keryx.agents.plugin import AgentPlugin
from keryx.app import System, open_system
from keryx.app import serve as run_gateway
from keryx.cli.log_format import formatter_of
from keryx.clock import SECOND, SystemClock
from keryx.config import Configuration, LogFormat, LogLevel
from keryx.core.upkeep.views.nodes import Nodes, show_nodes
from keryx.gateway.gateway import Account, Gateway

CHATTY = ("httpx", "httpcore", "httpx2", "httpcore2")
"""Loggers that tell every URL with all that is in it: addresses hold keys."""
HISTORY = "history"
"""What was typed, in the profile's data folder."""


def chat(configuration: Configuration, *, resume: str | None) -> int:
    """Chat in this terminal until the person leaves."""
    _say_who_wins(configuration)
    talk = importlib.import_module("keryx.cli.chat.chat").chat
    _log_to_file(configuration)

    async def run() -> int:
        async with open_system(configuration) as system:
            code: int = await talk(
                system.runtime,
                system.agent,
                system.toolbox,
                who=system.who,
                resume=resume,
                history=configuration.data_dir / HISTORY,
            )
            return code

    return asyncio.run(run())


def print_answer(configuration: Configuration, *, text: str, resume: str | None) -> int:
    """Print the answer to one question."""
    _say_who_wins(configuration)
    ask = importlib.import_module("keryx.cli.chat.print_answer").print_answer
    configure_logging("error", configuration.log.format)

    async def run() -> int:
        async with open_system(configuration, is_for_one_turn=True) as system:
            code: int = await ask(system.runtime, system.agent, system.toolbox, text, resume=resume)
            return code

    try:
        return asyncio.run(run())
    except KeyboardInterrupt:
        return 128 + signal.SIGINT  # before anything was asked


def serve(configuration: Configuration) -> int:
    """Run a gateway until Ctrl-C or SIGTERM; returns when everything is finished or handed back."""
    _say_who_wins(configuration)
    configure_logging(configuration.log.level, configuration.log.format)

    def ready(system: System, gateway: Gateway) -> None:
        accounts = ", ".join(map(told_account, gateway.accounts)) or "no platform set up yet"
        print(
            f"keryx: ready as {system.runtime.holder}, {accounts}. Ctrl-C ends.", file=sys.stderr, flush=True
        )

    asyncio.run(run_gateway(configuration, ready=ready))
    return 0


def told_account(account: Account) -> str:
    """Return an account as the line at the start names it."""
    return account.name if account.trouble is None else f"{account.name} (not connected: {account.trouble})"


def nodes(configuration: Configuration, *, as_json: bool) -> int:
    """Show who works on the store."""

    async def look() -> Nodes:
        async with open_system(configuration) as system:
            return await system.runtime.database.read(show_nodes)

    shown = asyncio.run(look())
    print(_as_json(shown) if as_json else _as_text(shown))
    return 0


def usage(configuration: Configuration, *, days: int, as_json: bool) -> int:
    """Show what models were used for."""
    tell = importlib.import_module("keryx.cli.usage").tell_days
    print(asyncio.run(tell(configuration, days=days, as_json=as_json)))
    return 0


def _say_who_wins(configuration: Configuration) -> None:
    """Warn of settings of an agent that have no effect, because another agent answers."""
    plugins = configuration.plugins
    for name, plugin in plugins.agents.items():
        assert isinstance(plugin, AgentPlugin)
        unused = plugin.unused(configuration) if name != plugins.agent else None
        if unused is not None:
            print(f"keryx: agent.{plugins.agent} answers; {unused}.", file=sys.stderr)


def _as_text(shown: Nodes) -> str:
    if not shown.nodes:
        return "Nobody works on this store now. `keryx serve` runs a gateway."
    now = SystemClock().now()
    lines: list[str] = []
    for node in shown.nodes:
        state = "gone" if node.left <= 0 else f"since {(now - node.started_at) // SECOND} s"
        lines.append(f"{node.kind} {node.holder} (pid {node.pid} on {node.host}, {node.version}): {state}")
        accounts = [each.name for each in shown.accounts if each.holder == node.holder]
        answering = [each.session_id for each in shown.turns if each.holder == node.holder]
        lines.append(
            f"  accounts: {', '.join(accounts) or 'none'}; answers in: {', '.join(answering) or 'none'}"
        )
    if shown.malformed:
        lines.append(f"{shown.malformed} updates could not be read so far; they are kept as they came.")
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


def configure_logging(level: LogLevel, form: LogFormat) -> None:
    """Send the log to standard error, as text or as a JSON object a line."""
    _set_up_log(logging.StreamHandler(), level, form)


def _log_to_file(configuration: Configuration) -> None:
    """Keep the log off the screen that people chat on."""
    configuration.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = logging.FileHandler(configuration.data_dir / "chat.log", encoding="utf-8")
    _set_up_log(handler, configuration.log.level, configuration.log.format)


def _set_up_log(handler: logging.Handler, level: LogLevel, form: LogFormat) -> None:
    handler.setFormatter(formatter_of(form))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
