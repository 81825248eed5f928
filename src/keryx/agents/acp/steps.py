"""The tools of an ACP program as calls in the transcript: stored with their results, never run by Keryx.

A tool that the program ran returns the result that the program reported. A permission that it requests is a question to
a person.
"""

from collections.abc import Sequence
from json import dumps
from typing import Final

from keryx.agents.acp.contract import ToolReports
from keryx.core.people.rules.toolset import AGENT_REPORTS
from keryx.core.turns.rules.program_calls import PERMISSION, TOOL_KINDS, tool_name
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.values.graphemes import one_line
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import ToolFailed
from keryx.tools.tool import Tool, ToolCall

TOOLSET: Final = "agent"
"""The people with this set may be asked for permissions of the program."""
READ_ONLY: Final = frozenset({"read", "search", "think"})
SHOWN_MAX: Final = 300
UNKNOWN: Final = "The agent ran this tool itself and was interrupted: the result is unknown."


def acp_tools(reports: ToolReports) -> Sequence[Tool]:
    """Return the tools of this module."""
    return [PermissionTool(), *(ReportedTool(kind, reports) for kind in TOOL_KINDS)]


class ReportedTool(Tool):
    """A kind of tool that the program runs itself."""

    def __init__(self, kind: str, reports: ToolReports) -> None:
        effect: StepEffect = "pure" if kind in READ_ONLY else "once"
        self.offer = ToolOffer(
            name=tool_name(kind),
            description="Done by the agent itself.",
            parameters={"type": "object"},
            effect=effect,
            toolset=AGENT_REPORTS,
        )
        self._reports = reports

    async def run(self, call: ToolCall) -> JsonValue:
        """Return the reported result; after a crash it is unknown."""
        report = self._reports.pop(call.session_id, None)
        if report is None:
            raise ToolFailed(UNKNOWN)
        if report.has_failed:
            raise ToolFailed(report.output if isinstance(report.output, str) else dumps(report.output))
        return report.output


class PermissionTool(Tool):
    """A permission that the program requests."""

    offer = ToolOffer(
        name=PERMISSION,
        description="Ask whether the agent may do something.",
        parameters={"type": "object"},
        effect="ask",
        toolset=TOOLSET,
    )

    async def run(self, call: ToolCall) -> JsonValue:  # noqa: ARG002 - the answer is the whole result
        """Return that the permission was given; the program acts itself."""
        return "allowed"

    def pattern(self, call: ToolCall) -> str:  # noqa: ARG002 - the same for every request
        """Return an empty pattern: only the program knows what a standing approval would cover."""
        return ""

    def question(self, call: ToolCall) -> str:
        """Return the question to a person."""
        title = one_line(str(call.arguments.get("title")), SHOWN_MAX)
        given = call.arguments.get("input")
        details = "" if given is None else f"\n{one_line(dumps(given, ensure_ascii=False), SHOWN_MAX)}"
        return f"The agent wants to do this: {title}{details}\nMay it?"
