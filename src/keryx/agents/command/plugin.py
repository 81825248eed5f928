"""The command agent as a plug-in."""

from pathlib import Path
from typing import Final

from keryx.agents.command.settings import COMMAND, FORMAT, ROWS, TIMEOUT
from keryx.agents.plugin import AgentContext, AgentPlugin, Answerer
from keryx.config import Answering


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


PLUGIN: Final = AgentPlugin(settings=ROWS, make=_make)
