"""Parse a text as a command, and run the command's handler.

A text that is a command never reaches the model, also when the command is unknown. The effect is in the transaction
that accepted the command.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from keryx.core.conversations.rules.command import Command, ParsedCommand, UnknownCommand
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    Handler,
    decline,
)
from keryx.core.people.rules.access import Grant, may_use
from keryx.core.people.views.grants import list_grants
from keryx.errors import InvalidValue, NotAllowed, NotFound, SessionBusy
from keryx.store.database import Tx

NOT_FOR_YOU: Final = "/{name} is not for you here."

# A slash, a word, perhaps a bot's name, then a blank or the end. So "//x", "/usr/bin", "/ x" and "/2" are text.
_WRITTEN: Final = re.compile(
    r"\s*/([a-z][a-z0-9_-]{0,31})(?:@([\w.:-]+))?(?:\s+(.*))?", re.IGNORECASE | re.DOTALL
)


class CommandTable:
    """The commands and their handlers, found by name and by alias."""

    def __init__(self, rows: Sequence[tuple[Command, Handler]]) -> None:
        self.commands: Final = tuple(command for command, _ in rows)
        self._handlers = {command.name: handler for command, handler in rows}
        self._by_name = {
            name: command for command in self.commands for name in (command.name, *command.aliases)
        }

    def parse(self, text: str) -> ParsedCommand | UnknownCommand | None:
        """Return the command that ``text`` is, or None for an ordinary message. Case does not matter."""
        match = _WRITTEN.fullmatch(text)
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
        """Return up to three names of commands like ``name``, best first; names that begin with it come first."""
        beginning = [known for known in self._by_name if known.startswith(name)]
        near = get_close_matches(name, self._by_name, n=3, cutoff=0.6)
        return tuple(dict.fromkeys(beginning + near))[:3]

    def run(self, tx: Tx, parsed: ParsedCommand, *, context: CommandContext) -> CommandOutcome:
        """Carry out a command, or say why not."""
        if not may_use_command(parsed.command, context, list_grants(tx)):
            return decline(context, NOT_FOR_YOU.format(name=parsed.name))
        if parsed.arguments and not parsed.command.arguments and parsed.name != "stop":
            # /stop stops the turn whatever follows it.
            return decline(
                context,
                f"/{parsed.name} takes nothing after it: send it alone, and the rest as a message of its own.",
            )
        try:
            return self._handlers[parsed.name](tx, context, parsed.arguments)
        except (InvalidValue, NotAllowed, NotFound, SessionBusy) as error:
            # Handlers raise before they write, so there is nothing to roll back.
            return decline(context, str(error))


def may_use_command(command: Command, context: CommandContext, grants: list[Grant]) -> bool:
    """Say whether the person may use the command on this platform."""
    return may_use(
        grants,
        role=context.person.role,
        platform=context.source.platform,
        kind="command",
        name=command.name,
        least=command.least,
    )
