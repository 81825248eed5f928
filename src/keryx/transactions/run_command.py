"""Run a command: may this person use it here, what it does, and what is said back.

The effect is in the transaction that accepted the command. What a command cannot do is said in words; it never
reaches the model.
"""

from collections.abc import Callable
from typing import Final

from keryx.domain.access import Grant, may_use
from keryx.domain.command import (
    COMMANDS,
    Command,
    ParsedCommand,
    UnknownCommand,
    find_command,
    nearest_commands,
)
from keryx.errors import InvalidValue, NotAllowed, NotFound, SessionBusy
from keryx.store.database import Tx
from keryx.store.tables import access
from keryx.transactions.command_handlers import (
    admission,
    approvals,
    conversations,
    duties,
    memory,
    pins,
    settings,
    state,
    transcript,
)
from keryx.transactions.command_handlers.context import (
    CommandContext,
    CommandOutcome,
    NeedsAnswer,
    decline,
    say,
    shortly,
)

__all__ = ["CommandContext", "CommandOutcome", "NeedsAnswer", "run_command"]

NOT_FOR_YOU: Final = "/{name} is not for you here."

Handler = Callable[[Tx, CommandContext, str], CommandOutcome]


def run_command(tx: Tx, parsed: ParsedCommand, *, context: CommandContext) -> CommandOutcome:
    """Carry out a command, or say why not."""
    grants = access.list_grants(tx)
    if not _may_use(parsed.command, context, grants):
        return decline(context, NOT_FOR_YOU.format(name=parsed.name))
    if parsed.arguments and not parsed.command.arguments and parsed.name != "stop":  # what is to end is ended
        return decline(
            context,
            f"/{parsed.name} takes nothing after it: send it alone, and the rest as a message of its own.",
        )
    try:
        return _HANDLERS[parsed.name](tx, context, parsed.arguments)
    except (InvalidValue, NotAllowed, NotFound, SessionBusy) as error:
        # Handlers find out before they write, so there is nothing to take back.
        return decline(context, str(error))


def show_help(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show the commands this person may use here, or one of them."""
    grants = access.list_grants(tx)
    if not arguments:
        usable = [command for command in COMMANDS if _may_use(command, context, grants)]
        return say(context, "\n".join(f"{command.usage}: {command.help}" for command in usable))
    command = find_command(arguments)
    if command is None:
        name = arguments.removeprefix("/").lower()
        return decline(context, UnknownCommand(name=shortly(name), nearest=nearest_commands(name)).reply)
    if not _may_use(command, context, grants):
        return decline(context, NOT_FOR_YOU.format(name=command.name))
    also = f" Also: {', '.join(f'/{alias}' for alias in command.aliases)}." if command.aliases else ""
    return say(context, f"{command.usage}: {command.help}{also}")


def _may_use(command: Command, context: CommandContext, grants: list[Grant]) -> bool:
    return may_use(
        grants,
        role=context.person.role,
        platform=context.source.platform,
        kind="command",
        name=command.name,
        least=command.least,
    )


_HANDLERS: Final[dict[str, Handler]] = {
    "new": conversations.new,
    "resume": conversations.resume_conversation,
    "sessions": conversations.list_conversations,
    "search": state.search,
    "title": settings.title,
    "retry": transcript.retry_turn,
    "undo": transcript.undo_turns,
    "redo": transcript.redo_turns,
    "fork": conversations.fork_conversation,
    "compress": transcript.compress,
    "pin": pins.pin,
    "stop": transcript.stop,
    "status": state.status,
    "usage": state.usage,
    "why": state.why,
    "model": settings.model,
    "personality": settings.personality,
    "platforms": state.platforms,
    "sethome": duties.sethome,
    "schedule": duties.schedule,
    "processes": state.processes,
    "approve": approvals.approve,
    "deny": approvals.deny,
    "attach": conversations.attach_conversation,
    "detach": conversations.detach_conversation,
    "link": admission.link,
    "pair": admission.pair,
    "memory": memory.memory,
    "project": settings.project,
    "help": show_help,
}
