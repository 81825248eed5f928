"""What an ACP agent does itself, as calls in the transcript: kept with their results, never run by us.

Nothing is done here. A tool the agent used gives back what the agent reported of it; what it wants to be allowed is a
question to a person.
"""

from collections.abc import Sequence
from json import dumps
from typing import Final

from keryx.agents.acp_words import KINDS, PERMISSION, Reports, tool_name
from keryx.agents.agent import ToolOffer
from keryx.domain.graphemes import one_line
from keryx.domain.json_value import JsonValue
from keryx.domain.toolset import REPORTED
from keryx.domain.turn import StepEffect
from keryx.tools.tool import Tool, ToolFailed, Use

TOOLSET: Final = "agent"
"""Whoever is given this set may be asked what the agent may do."""
LOOKS_ONLY: Final = frozenset({"read", "search", "think"})
SHOWN_MAX: Final = 300
UNKNOWN: Final = "The agent did this itself and was interrupted: it is unknown what came of it."


def acp_tools(reports: Reports) -> Sequence[Tool]:
    """Return the tools of this module."""
    return [Permission(), *(Reported(kind, reports) for kind in KINDS)]


class Reported:
    """A kind of tools the agent used itself."""

    def __init__(self, kind: str, reports: Reports) -> None:
        effect: StepEffect = "pure" if kind in LOOKS_ONLY else "once"
        self.offer = ToolOffer(
            name=tool_name(kind),
            description="Done by the agent itself.",
            parameters={"type": "object"},
            effect=effect,
            toolset=REPORTED,
        )
        self._reports = reports

    async def run(self, use: Use) -> JsonValue:
        """Return what the agent reported; after a crash nobody knows."""
        report = self._reports.take(use.session_id)
        if report is None:
            raise ToolFailed(UNKNOWN)
        if report.has_failed:
            raise ToolFailed(report.output if isinstance(report.output, str) else dumps(report.output))
        return report.output

    def question(self, use: Use) -> str:  # noqa: ARG002 - nobody is ever asked
        """Return what nobody is asked."""
        return self.offer.description

    def pattern(self, use: Use) -> str | None:  # noqa: ARG002
        """Return None: there is nothing to allow."""
        return None


class Permission:
    """Something the agent wants to be allowed."""

    offer = ToolOffer(
        name=PERMISSION,
        description="Ask whether the agent may do something.",
        parameters={"type": "object"},
        effect="ask",
        toolset=TOOLSET,
    )

    async def run(self, use: Use) -> JsonValue:  # noqa: ARG002 - the answer is all there is to it
        """Return that it was allowed; the agent itself does it."""
        return "allowed"

    def pattern(self, use: Use) -> str:  # noqa: ARG002 - whatever it is about
        """Return nothing: the program knows best what a lasting yes would mean, so each wish is put for itself."""
        return ""

    def question(self, use: Use) -> str:
        """Return what a person is asked."""
        title = one_line(use.text("title"), SHOWN_MAX)
        given = use.arguments.get("input")
        details = "" if given is None else f"\n{one_line(dumps(given, ensure_ascii=False), SHOWN_MAX)}"
        return f"The agent wants to do this: {title}{details}\nMay it?"
