"""The ACP agent as a plug-in."""

from pathlib import Path
from typing import Final

from keryx.agents.plugin import AgentContext, AgentPlugin, Answerer
from keryx.config import Answering
from keryx.config.readers import command_line
from keryx.config.setting import Setting

ACP: Final[Setting[tuple[str, ...]]] = Setting(
    name="agent.acp",
    read=command_line,
    default=(),
    place="own",  # a project must not have programs started
    is_path=True,
    help="The command line of an ACP program that answers instead of a model.",
)


def _make(context: AgentContext) -> Answerer:
    from keryx.agents.acp.agent import AcpAgent
    from keryx.agents.acp.contract import ToolReports
    from keryx.agents.acp.steps import acp_tools
    from keryx.subprocesses.start_program import ProgramSettings

    configuration = context.configuration
    program = ProgramSettings(
        command=configuration.values.of(ACP),
        folder=configuration.workspace or Path.cwd(),
        environment=configuration.foreign_variables,
    )
    reports = ToolReports()
    agent = AcpAgent(
        program,
        errors=configuration.data_dir / "agent.log",
        reports=reports,
        read_media=context.read_media,
    )
    return Answerer(
        agent=agent,
        tools=acp_tools(reports),
        who=Answering(default=f"{program.name} (ACP)", takes_models=False),
        warm_up=agent.warm_up,
    )


PLUGIN: Final = AgentPlugin(settings=(ACP,), make=_make)
