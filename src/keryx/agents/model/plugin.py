"""The model agent as a plug-in; where no model is chosen, the guide answers."""

from typing import TYPE_CHECKING, Final

from keryx.agents.model.choice import MODEL, ON, ROWS, access_of, model_choice
from keryx.agents.model.local_servers import LOCAL_SERVERS
from keryx.agents.plugin import AgentContext, AgentPlugin, Answerer
from keryx.config import Answering, Configuration

if TYPE_CHECKING:
    from keryx.agents.model.setup_hints import SetupHints

GUIDE: Final = "the built-in guide (no model is set up)"


def _make(context: AgentContext) -> Answerer:
    from keryx.agents.model.agent import ModelAgent
    from keryx.agents.model.guide import Guide

    choice = model_choice(context.configuration.values)
    agent = ModelAgent(
        choice,
        access_of(context.configuration),
        otherwise=Guide(_hints(context.configuration)),
        clock=context.clock,
        read_media=context.read_media,
    )
    who = Answering(default=choice.model or GUIDE, by_platform=choice.by_platform)
    return Answerer(
        agent=agent, who=who, warm_up=agent.warm_up if choice.model or choice.by_platform else None
    )


def _hints(configuration: Configuration) -> "SetupHints":
    from keryx.agents.model.setup_hints import SetupHints, keys_in

    return SetupHints(
        command=configuration.command, keys=keys_in(configuration.variables), servers=LOCAL_SERVERS
    )


def _unused(configuration: Configuration) -> str | None:
    model = configuration.values.of(MODEL)
    if model or any(configuration.values.by_choice(ON).values()):
        return f"the model ({model or 'set for a platform'}) is not asked"
    return None


PLUGIN: Final = AgentPlugin(settings=ROWS, make=_make, unused=_unused)
