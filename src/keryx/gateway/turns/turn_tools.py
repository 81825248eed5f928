"""Which tools a turn is given: what role and platform grant, and in a silent turn only what keeps notes.

A session that was given a task has only what came with it.
"""

from functools import cache

from keryx.core.people.rules.toolset import AGENT_REPORTS, MEMORY, RESULTS, ToolsetSettings, may_use_toolset
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.turns.rules.turn import yields_to_others
from keryx.core.turns.views.turn import TurnView
from keryx.core.values.turn_states import TurnPurpose
from keryx.tools.tool import Toolbox

ALWAYS = (AGENT_REPORTS, RESULTS)
"""What is of use only beside other tools."""


def tools_for(
    toolbox: Toolbox, view: TurnView, *, purpose: TurnPurpose, toolsets: ToolsetSettings
) -> Toolbox:
    """Return the tools of a turn; the agent is told of no other, and a call of another finds none."""
    silent = yields_to_others(purpose)

    @cache
    def is_granted(toolset: str, is_foreign: bool) -> bool:  # noqa: FBT001 - asked for a dozen tools of a set
        return may_use_toolset(
            toolsets,
            view.grants,
            role=view.role,
            platform=view.platform,
            toolset=toolset,
            is_foreign=is_foreign,
        )

    def is_given(offer: ToolOffer) -> bool:
        if offer.toolset == AGENT_REPORTS:
            return True
        if purpose == "title" or (silent and offer.toolset != MEMORY):
            return False
        if offer.toolset == RESULTS:
            return any(is_given(other) for other in toolbox.offers() if other.toolset not in ALWAYS)
        task = view.delegation
        if task is not None and not task.gives(offer.name, toolset=offer.toolset, effect=offer.effect):
            return False
        return is_granted(offer.toolset, offer.is_foreign)

    return toolbox.only(is_given, unattended=silent)
