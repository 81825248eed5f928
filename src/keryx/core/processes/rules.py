"""Rules for background processes: how long they pin a session, bounds of a wait, kept output, notices.

A process leaves ``running`` once and never returns to it.
"""

from typing import Literal, NamedTuple

from keryx.clock import MINUTE, Micros
from keryx.errors import InvalidValue
from keryx.values import dataclass

ProcessState = Literal["running", "exited", "killed", "lost"]

PIN_HOURS = 24
WAIT_SECONDS_MAX = 180.0
KEPT_AFTER_END: Micros = 30 * MINUTE
PATTERNS_MAX = 10
PATTERN_CHARACTERS_MAX = 200


class Wait(NamedTuple):
    """How long a wait lasts, and whether this differs from the requested time."""

    seconds: float
    clamped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticePolicy:
    """When a process creates an inbox item for its session: on exit, on a text in its output, at an interval.

    Patterns are literal text, because a regular expression from a model could stall the reader.
    """

    on_exit: bool = True
    patterns: tuple[str, ...] = ()
    every_minutes: int | None = None

    def __post_init__(self) -> None:
        if len(self.patterns) > PATTERNS_MAX:
            raise InvalidValue(f"{len(self.patterns)} watched patterns: give at most {PATTERNS_MAX}")
        for pattern in self.patterns:
            if not 1 <= len(pattern) <= PATTERN_CHARACTERS_MAX:
                raise InvalidValue(
                    f"watched pattern {pattern[:40]!r}: give 1 to {PATTERN_CHARACTERS_MAX} characters"
                )
        if self.every_minutes is not None and self.every_minutes < 1:
            raise InvalidValue(f"notice every {self.every_minutes} minutes: give 1 or more")

    def patterns_in(self, line: str) -> list[str]:
        """Return the watched patterns that ``line`` contains."""
        return [pattern for pattern in self.patterns if pattern in line]

    def periodic_due(self, *, last_notice_at: Micros, now: Micros) -> bool:
        """Return whether the regular notice is due; before the first notice, ``last_notice_at`` is the start."""
        return self.every_minutes is not None and now - last_notice_at >= self.every_minutes * MINUTE


def clamp_wait(seconds: float, *, seconds_max: float = WAIT_SECONDS_MAX) -> Wait:
    """Return how long to wait if ``seconds`` were requested; a negative number or NaN becomes 0."""
    if not seconds >= 0:
        return Wait(0.0, clamped=True)
    return Wait(min(float(seconds), seconds_max), clamped=seconds > seconds_max)


def output_kept(*, ended_at: Micros | None, now: Micros) -> bool:
    """Return whether the process's output is still kept: while it runs, and for 30 minutes after its end."""
    return ended_at is None or now - ended_at < KEPT_AFTER_END
