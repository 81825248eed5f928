"""The limits of a session that works on a delegated task: its depth and its tools.

A child session never gets more tools than its parent, no tool that asks or notifies people, and no unlimited
delegation.
"""

from collections.abc import Sequence
from json import dumps, loads
from typing import Final, Self

from keryx.core.people.rules.toolset import MESSAGING
from keryx.core.values.turn_states import StepEffect
from keryx.errors import InvalidValue
from keryx.values import dataclass

DELEGATE: Final = "delegate"
"""The tool by which an agent delegates a task."""
DEPTH_MAX: Final = 2
TASKS_MAX: Final = 8
"""How many tasks one turn may delegate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """A delegated task: the key of the call that delegated it, its depth below the first session, and its tools."""

    key: str
    depth: int
    tools: Sequence[str]

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= DEPTH_MAX:
            raise InvalidValue(
                f"a task {self.depth} sessions deep: at most {DEPTH_MAX}; do it here instead of delegating it"
            )

    def gives(self, name: str, *, toolset: str, effect: StepEffect) -> bool:
        """Return whether a session with this task gets a tool that its person and platform are granted."""
        if name == DELEGATE and self.depth == DEPTH_MAX:
            return False
        # No person takes part in this session, so it cannot ask anyone. It reports only to the delegating session.
        return name in self.tools and effect != "ask" and toolset != MESSAGING

    def __str__(self) -> str:
        """Return the text that ``parse`` reads; it is stored as the origin of the link between the two sessions."""
        return dumps(
            {"call": self.key, "depth": self.depth, "tools": sorted(self.tools)}, separators=(",", ":")
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the delegation that ``str`` wrote, or raise ``InvalidValue``."""
        try:
            found = loads(text)
            return cls(key=str(found["call"]), depth=int(found["depth"]), tools=tuple(found["tools"]))
        except (KeyError, TypeError, ValueError):
            raise InvalidValue(f"{text[:80]!r} does not describe a delegated task") from None
