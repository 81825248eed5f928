"""The commands, the same on every surface: one table, and the reading of a text as one of them.

A text that is a command never reaches the model, also when the command is unknown.
"""

import re
from difflib import get_close_matches
from typing import Final

from keryx.domain.person import Role
from keryx.errors import InvalidValue
from keryx.values import dataclass

UNDO_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command as people know it; ``least`` is the role from which on it may be used without a grant."""

    name: str
    help: str
    arguments: str = ""
    aliases: tuple[str, ...] = ()
    least: Role = "member"

    @property
    def usage(self) -> str:
        """How it is written, like ``/undo [turns]``."""
        return f"/{self.name} {self.arguments}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommand:
    """A known command with the text after it; ``addressee`` is the bot named with it (``/new@my_bot``)."""

    command: Command
    arguments: str
    addressee: str | None = None

    @property
    def name(self) -> str:
        """The command's name, also where an alias was written."""
        return self.command.name


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownCommand:
    """Something written like a command that is none, and the nearest ones that are."""

    name: str
    nearest: tuple[str, ...]
    addressee: str | None = None

    @property
    def reply(self) -> str:
        """What the sender is told."""
        if not self.nearest:
            return f"There is no command /{self.name}. /help lists them."
        names = " or ".join(f"/{name}" for name in self.nearest)
        return f"There is no command /{self.name}. Did you mean {names}? /help lists them all."


COMMANDS: Final[tuple[Command, ...]] = (
    Command(name="new", aliases=("reset",), least="guest", help="Start a fresh conversation here."),
    Command(name="resume", arguments="[name or number]", help="Go on with an earlier conversation."),
    Command(name="sessions", help="List your conversations."),
    Command(name="search", arguments="<words>", help="Find anything said before."),
    Command(name="title", arguments="[text]", help="Show or set this conversation's title."),
    Command(name="retry", least="guest", help="Answer the last message again."),
    Command(name="undo", arguments="[turns]", least="guest", help="Take back the last turn, or several."),
    Command(name="redo", least="guest", help="Go back to what was undone."),
    Command(name="fork", help="Go on from here in a new conversation."),
    Command(
        name="compress",
        arguments="[focus | preview | undo]",
        help="Summarise what came before, to make room.",
    ),
    Command(
        name="pin",
        arguments="[number | list | remove <number>]",
        help="Keep the last answer, or another message, out of summaries.",
    ),
    Command(name="stop", least="guest", help="Stop the running turn."),
    Command(name="status", least="guest", help="Show what is going on here."),
    Command(name="usage", help="Show tokens and cost."),
    Command(name="why", help="Tell the fate of the last message, the last reset and the last delivery."),
    Command(name="model", arguments="[name]", help="Show or set the model of this conversation."),
    Command(name="personality", arguments="[name]", help="Show or set how the agent speaks here."),
    Command(name="platforms", help="Show the connected platforms."),
    Command(name="sethome", least="owner", help="Make this chat the platform's home channel."),
    Command(name="schedule", arguments="[list | add … | remove …]", help="Show or change scheduled turns."),
    Command(name="processes", help="Show the background processes of this conversation."),
    Command(
        name="approve",
        arguments="[number] [session or always], rules, forget <number>",
        help="Allow what the agent asked for, this time or lastingly; show or forget what you lastingly allow.",
    ),
    Command(name="deny", arguments="[number]", help="Refuse what the agent asked for."),
    Command(name="attach", arguments="<session>", help="Join this chat to a conversation held elsewhere."),
    Command(name="detach", help="End what /attach began."),
    Command(name="link", arguments="[code]", help="Prove that two accounts are the same person."),
    Command(
        name="pair",
        arguments="[approve …, deny …, people, role …, block …, unblock …, grants, allow …, forbid … or forget …]",
        least="owner",
        help="Answer strangers who ask in; show who is in, and decide who may do what.",
    ),
    Command(
        name="memory",
        arguments="[words, number, edit …, forget …, restore … or undo]",
        help="Show or change what is remembered here.",
    ),
    Command(name="project", arguments="[name]", help="Show or set the project of this conversation."),
    Command(name="help", arguments="[command]", least="guest", help="Show the commands."),
)

_BY_NAME: Final[dict[str, Command]] = {
    name: command for command in COMMANDS for name in (command.name, *command.aliases)
}

STOP: Final = ParsedCommand(command=_BY_NAME["stop"], arguments="")

# A slash, a word, perhaps a bot's name, then a blank or the end. So "//x", "/usr/bin", "/ x" and "/2" are text.
_WRITTEN: Final = re.compile(
    r"\s*/([a-z][a-z0-9_-]{0,31})(?:@([\w.:-]+))?(?:\s+(.*))?", re.IGNORECASE | re.DOTALL
)


def parse_command(text: str) -> ParsedCommand | UnknownCommand | None:
    """Return the command ``text`` is, or None when it is something said. Case does not matter."""
    match = _WRITTEN.fullmatch(text)
    if match is None:
        return None
    name = match[1].lower()
    command = _BY_NAME.get(name)
    if command is None:
        return UnknownCommand(name=name, nearest=nearest_commands(name), addressee=match[2])
    return ParsedCommand(command=command, arguments=(match[3] or "").strip(), addressee=match[2])


def find_command(name: str) -> Command | None:
    """Return the command called ``name``, by alias too, with or without its slash."""
    return _BY_NAME.get(name.removeprefix("/").lower())


def nearest_commands(name: str) -> tuple[str, ...]:
    """Return up to three commands spelled like ``name``, best first; those that begin with it before all."""
    beginning = [known for known in _BY_NAME if known.startswith(name)]
    near = get_close_matches(name, _BY_NAME, n=3, cutoff=0.6)
    return tuple(dict.fromkeys(beginning + near))[:3]


def parse_turns(arguments: str) -> int:
    """Return how many turns ``/undo`` takes back; raises InvalidValue unless that is a number from 1 to 100."""
    if not arguments:
        return 1
    if not re.fullmatch(r"[0-9]{1,3}", arguments) or not 1 <= int(arguments) <= UNDO_MAX:
        raise InvalidValue(
            f"/undo {arguments[:40]}: give a number of turns from 1 to {UNDO_MAX}, like /undo 2"
        )
    return int(arguments)
