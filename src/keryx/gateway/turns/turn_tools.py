"""Decide which tools a turn gets: those granted to its role and platform; in a silent turn, only those for memory.

A delegated task limits them further.
"""

from functools import cache

from keryx.core.people.rules.toolset import AGENT_REPORTS, MEMORY, RESULTS, ToolsetSettings, may_use_toolset
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.turns.rules.turn import yields_to_others
from keryx.core.turns.views.turn import TurnView
from keryx.core.values.turn_states import TurnPurpose
from keryx.tools.tool import Toolbox

ALWAYS = (AGENT_REPORTS, RESULTS)
"""Toolsets that help only beside other tools."""


def tools_for(
    toolbox: Toolbox, view: TurnView, *, purpose: TurnPurpose, toolsets: ToolsetSettings
) -> Toolbox:
    """Return the tools of a turn. The agent sees and can call only these."""
    silent = yields_to_others(purpose)

    @cache
    def is_granted(toolset: str, is_foreign: bool) -> bool:  # noqa: FBT001 - cached by both
        return may_use_toolset(
            toolsets,
            view.grants,
            role=view.role,
            platform=view.platform,
            toolset=toolset,
            is_foreign=is_foreign,
        )

    def is_offered(offer: ToolOffer) -> bool:
        if offer.toolset == AGENT_REPORTS:
            return True
        if purpose == "title" or (silent and offer.toolset != MEMORY):
            return False
        if offer.toolset == RESULTS:
            return any(is_offered(other) for other in toolbox.offers() if other.toolset not in ALWAYS)
        task = view.delegation
        if task is not None and not task.gives(offer.name, toolset=offer.toolset, effect=offer.effect):
            return False
        return is_granted(offer.toolset, offer.is_foreign)

    return toolbox.only(is_offered, unattended=silent)
