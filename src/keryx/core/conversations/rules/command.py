"""A command, and the result of parsing a text that begins with a slash."""

from keryx.core.values.role import Role
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command as people see it. A person with the role ``least`` or a higher one may use it without a grant."""

    name: str
    help: str
    arguments: str = ""
    aliases: tuple[str, ...] = ()
    least: Role = "member"

    @property
    def usage(self) -> str:
        """How the command is written, like ``/undo [turns]``."""
        return f"/{self.name} {self.arguments}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommand:
    """A known command and the text after it. ``addressee`` is the bot named with it (``/new@my_bot``)."""

    command: Command
    arguments: str
    addressee: str | None = None

    @property
    def name(self) -> str:
        """The command's name, also if the person wrote an alias."""
        return self.command.name


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownCommand:
    """A text written like a command that does not exist, and the commands with the nearest names."""

    name: str
    nearest: tuple[str, ...]
    addressee: str | None = None

    @property
    def reply(self) -> str:
        """The reply to the sender."""
        if not self.nearest:
            return f"There is no command /{self.name}. /help lists them."
        names = " or ".join(f"/{name}" for name in self.nearest)
        return f"There is no command /{self.name}. Did you mean {names}? /help lists them all."
