"""``/processes``: the background processes of a conversation."""

from typing import Final

from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    ago,
    say,
    shortly,
)
from keryx.core.processes.views import ListedProcess, list_processes
from keryx.store.database import Tx

PROCESSES_SHOWN: Final = 10
NO_PROCESSES: Final = "This conversation has no background processes."


def processes(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Show the background processes of this conversation, newest first."""
    listed = list_processes(tx, context.session_id, limit=PROCESSES_SHOWN)
    if not listed:
        return say(context, f"{NO_PROCESSES} Ask the agent to run a command in the background.")
    return say(context, "\n".join(_process(process, now=tx.now) for process in listed))


def _process(process: ListedProcess, *, now: int) -> str:
    code = "" if process.exit_code is None else f" with {process.exit_code}"
    since = process.started_at if process.ended_at is None else process.ended_at
    return f"{process.id}. {shortly(process.command)}: {process.state}{code}, {ago(since, now=now)}"
