"""The command agent as a plug-in."""

from pathlib import Path
from typing import Final, get_args

from keryx.agents.briefing import CommandFormat
from keryx.agents.plugin import AgentContext, AgentPlugin, Answerer
from keryx.config import Answering
from keryx.config.readers import command_line, one_of, whole
from keryx.config.setting import Setting

# In the owner's file only: a project must not have programs started.
COMMAND: Setting[tuple[str, ...]] = Setting(
    name="agent.command",
    read=command_line,
    default=(),
    place="own",
    is_path=True,
    help="The command line of a program that runs once for each turn and answers it.",
)
FORMAT: Setting[CommandFormat] = Setting(
    name="agent.format",
    read=one_of(get_args(CommandFormat)),
    default="text",
    place="own",
    help="The format of that program's input and output: `text`, or `jsonl` with one object per line.",
)
TIMEOUT: Setting[int] = Setting(
    name="agent.timeout_seconds",
    read=whole(1, 86_400),
    default=600,
    place="own",
    help="The longest time without output of that program, before and after its first word.",
)


def _make(context: AgentContext) -> Answerer:
    from keryx.agents.command.agent import CommandAgent
    from keryx.subprocesses.start_program import ProgramSettings

    configuration = context.configuration
    values = configuration.values
    program = ProgramSettings(
        command=values.of(COMMAND),
        folder=configuration.workspace or Path.cwd(),
        environment=configuration.foreign_variables,
    )
    agent = CommandAgent(
        program,
        speaks=values.of(FORMAT),
        profile=configuration.profile,
        silence_seconds=values.of(TIMEOUT),
    )
    return Answerer(agent=agent, who=Answering(default=program.name, takes_models=False))


PLUGIN: Final = AgentPlugin(settings=(COMMAND, FORMAT, TIMEOUT), make=_make)
