"""``/help``: the commands that a person may use here."""

from keryx.commands.parse_and_run import NOT_FOR_YOU, may_use_command
from keryx.core.conversations.rules.command import UnknownCommand
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    decline,
    say,
    shortly,
)
from keryx.core.people.views.grants import list_grants
from keryx.store.database import Tx


def show_help(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show the commands this person may use here, or one of them."""
    grants = list_grants(tx)
    commands = context.commands
    if not arguments:
        usable = [command for command in commands.commands if may_use_command(command, context, grants)]
        return say(context, "\n".join(f"{command.usage}: {command.help}" for command in usable))
    command = commands.find(arguments)
    if command is None:
        name = arguments.removeprefix("/").lower()
        return decline(context, UnknownCommand(name=shortly(name), nearest=commands.nearest(name)).reply)
    if not may_use_command(command, context, grants):
        return decline(context, NOT_FOR_YOU.format(name=command.name))
    also = f" Also: {', '.join(f'/{alias}' for alias in command.aliases)}." if command.aliases else ""
    return say(context, f"{command.usage}: {command.help}{also}")
