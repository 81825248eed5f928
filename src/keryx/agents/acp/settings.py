"""The settings of the ACP agent. They stand in the owner's file only: a project must not have programs started."""

from typing import Final

from keryx.config.readers import command_line
from keryx.config.setting import Setting

ACP: Final[Setting[tuple[str, ...]]] = Setting(
    name="agent.acp",
    read=command_line,
    default=(),
    place="own",
    is_path=True,
    help="The command line of an ACP program that answers instead of a model.",
)
