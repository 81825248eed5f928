"""The settings of the command agent. They stand in the owner's file only: a project must not have programs started."""

from typing import Any, Final, Literal, get_args

from keryx.config.readers import command_line, one_of, whole
from keryx.config.setting import Setting

CommandFormat = Literal["text", "jsonl"]

COMMAND: Setting[tuple[str, ...]] = Setting(
    name="agent.command",
    read=command_line,
    default=(),
    place="own",
    is_path=True,
    help="The command line of a program that is run for each turn and answers it.",
)
FORMAT: Setting[CommandFormat] = Setting(
    name="agent.format",
    read=one_of(get_args(CommandFormat)),
    default="text",
    place="own",
    help="What that program reads and writes: `text`, or `jsonl`, an object a line.",
)
TIMEOUT: Setting[int] = Setting(
    name="agent.timeout_seconds",
    read=whole(1, 86_400),
    default=600,
    place="own",
    help="How long that program may be silent, before its first word and after any other.",
)
ROWS: Final[tuple[Setting[Any], ...]] = (COMMAND, FORMAT, TIMEOUT)
