"""Parse a text as a command, run the command's handler, and show the help.

A command never reaches the model, even if it is unknown. Its effect is part of the transaction that accepts it.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from keryx.core.conversations.rules.command import Command, ParsedCommand, UnknownCommand
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    Handler,
    decline,
    say,
    shortly,
)
from keryx.core.people.rules.access import Grant, may_use_command
from keryx.core.people.views.people_list import list_grants
from keryx.errors import InvalidValue, NotAllowed, NotFound, SessionBusy
from keryx.store.database import Tx

_NOT_ALLOWED: Final = "You may not use /{name} here."

# A slash, a name, optionally a bot's name, then white space or the end. "//x", "/usr/bin", "/ x" and "/2" are text.
_COMMAND: Final = re.compile(
    r"\s*/([a-z][a-z0-9_-]{0,31})(?:@([\w.:-]+))?(?:\s+(.*))?", re.IGNORECASE | re.DOTALL
)


class CommandTable:
    """The commands and their handlers, found by name and by alias."""

    def __init__(self, handlers: Mapping[Command, Handler]) -> None:
        self.commands: Final = tuple(handlers)
        self._handlers = handlers
        self._by_name = {
            name: command for command in self.commands for name in (command.name, *command.aliases)
        }

    def parse(self, text: str) -> ParsedCommand | UnknownCommand | None:
        """Return the command that ``text`` is, or None for an ordinary message. Case does not matter."""
        match = _COMMAND.fullmatch(text)
        if match is None:
            return None
        name = match[1].lower()
        command = self._by_name.get(name)
        if command is None:
            return UnknownCommand(name=name, nearest=self.nearest(name), addressee=match[2])
        return ParsedCommand(command=command, arguments=(match[3] or "").strip(), addressee=match[2])

    def find(self, name: str) -> Command | None:
        """Return the command with this name or alias, with or without its slash."""
        return self._by_name.get(name.removeprefix("/").lower())

    def nearest(self, name: str) -> tuple[str, ...]:
        """Return up to three command names that are similar to ``name``. Names that begin with it come first."""
        beginning = [known for known in self._by_name if known.startswith(name)]
        near = get_close_matches(name, self._by_name, n=3, cutoff=0.6)
        return tuple(dict.fromkeys(beginning + near))[:3]

    def run(self, tx: Tx, parsed: ParsedCommand, *, context: CommandContext) -> CommandOutcome:
        """Carry out a command, or reply why it is declined."""
        if not _may_use(parsed.command, context, list_grants(tx)):
            return decline(context, _NOT_ALLOWED.format(name=parsed.name))
        if parsed.arguments and not parsed.command.arguments and parsed.name != "stop":
            # /stop stops the turn even if text follows.
            return decline(
                context,
                f"/{parsed.name} takes no arguments. Send it alone, and the rest as a separate message.",
            )
        try:
            return self._handlers[parsed.command](tx, context, parsed.arguments)
        except (InvalidValue, NotAllowed, NotFound, SessionBusy) as error:
            # Handlers raise before they write, so there is nothing to roll back.
            return decline(context, str(error))


def show_help(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show the commands that the person may use here, or the help of one of them."""
    grants = list_grants(tx)
    commands = context.commands
    if not arguments:
        usable = [command for command in commands.commands if _may_use(command, context, grants)]
        return say(context, "\n".join(f"{command.usage}: {command.help}" for command in usable))
    command = commands.find(arguments)
    if command is None:
        name = arguments.removeprefix("/").lower()
        return decline(context, UnknownCommand(name=shortly(name), nearest=commands.nearest(name)).reply)
    if not _may_use(command, context, grants):
        return decline(context, _NOT_ALLOWED.format(name=command.name))
    also = f" Also: {', '.join(f'/{alias}' for alias in command.aliases)}." if command.aliases else ""
    return say(context, f"{command.usage}: {command.help}{also}")


def _may_use(command: Command, context: CommandContext, grants: list[Grant]) -> bool:
    return may_use_command(
        grants,
        role=context.person.role,
        platform=context.source.platform,
        name=command.name,
        least=command.least,
    )
