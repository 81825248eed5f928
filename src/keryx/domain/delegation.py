"""What a session may do that another one gave a task to: how deep it stands, and with which tools.

A child is never given more than its parent has, nothing that asks or tells people, and no way to delegate without end.
"""

from collections.abc import Sequence
from json import dumps, loads
from typing import Final, Self

from keryx.domain.toolset import TALK
from keryx.domain.turn import StepEffect
from keryx.errors import InvalidValue
from keryx.values import dataclass

DELEGATE: Final = "delegate"
"""The tool by which an agent gives a task away."""
TASK_PLATFORM: Final = "delegation"
"""Where the refs of tasks are unique; such an item is no message of anybody."""
DEPTH_MAX: Final = 2
TASKS_MAX: Final = 8
"""How many tasks one turn may give away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """By which call a session came to be, how many sessions stand above it, and the tools it was given."""

    key: str
    depth: int
    tools: Sequence[str]

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= DEPTH_MAX:
            raise InvalidValue(
                f"a task {self.depth} sessions deep: at most {DEPTH_MAX}; do it here instead of delegating it"
            )

    def gives(self, name: str, *, toolset: str, effect: StepEffect) -> bool:
        """Say whether a session with this task is given a tool that its person and platform are granted."""
        if name == DELEGATE and self.depth == DEPTH_MAX:
            return False
        # Nobody speaks with this session, so nobody can be asked, and it tells nobody but who gave it the task.
        return name in self.tools and effect != "ask" and toolset != TALK

    def __str__(self) -> str:
        """Return the text that ``parse`` reads; it stands as the origin of the link between the two sessions."""
        return dumps(
            {"call": self.key, "depth": self.depth, "tools": sorted(self.tools)}, separators=(",", ":")
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Invert ``str``, or raise ``InvalidValue``."""
        try:
            found = loads(text)
            return cls(key=str(found["call"]), depth=int(found["depth"]), tools=tuple(found["tools"]))
        except (KeyError, TypeError, ValueError):
            raise InvalidValue(f"{text[:80]!r} does not say what was delegated") from None


def task_ref(key: str) -> str:
    """Return the ref under which the task of a call is found again, however often the call runs."""
    return f"call:{key}"
