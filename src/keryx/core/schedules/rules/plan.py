"""The plan of a schedule: its rule as text, the task, the route of the answer, and the policies.

A plan that can be constructed can be stored. Whether its rule ever fires depends on when the plan is written, so
``schedules.rules.timing`` checks that.
"""

from dataclasses import fields
from typing import Any, Final, Self

from keryx.core.conversations.rules.part import Part
from keryx.core.deliveries.rules.route import Route
from keryx.core.schedules.rules.timing import MISSED_POLICIES, OVERLAP_POLICIES, MissedPolicy, OverlapPolicy
from keryx.errors import InvalidValue
from keryx.values import dataclass

NAME_CHARACTERS_MAX: Final = 80
RETRIES_MAX: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """The rarely used options.

    ``failure_route`` is the text of a checked route; ``quiet`` sends nothing if there is nothing to report;
    ``script`` runs instead of an agent; ``context_from`` is the schedule whose last result is included.
    """

    retries: int = 0
    failure_route: str | None = None
    quiet: bool = False
    script: str | None = None
    context_from: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.retries <= RETRIES_MAX:
            raise InvalidValue(f"{self.retries} retries of a schedule: give 0 to {RETRIES_MAX}")
        for name in ("failure_route", "script"):
            if getattr(self, name) == "":
                raise InvalidValue(f"{name} of a schedule is empty: leave it out if there is none")

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read the stored fields of any version: unknown keys are ignored, a missing key means the default."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePlan:
    """All settings of a schedule that a person chooses."""

    name: str
    rule: str
    zone: str
    parts: tuple[Part, ...]
    route: Route
    missed: MissedPolicy = "skip"
    overlap: OverlapPolicy = "skip"
    options: ScheduleOptions = ScheduleOptions()

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > NAME_CHARACTERS_MAX:
            raise InvalidValue(
                f"schedule name {self.name[:40]!r}: give 1 to {NAME_CHARACTERS_MAX} characters"
            )
        if not self.parts and self.options.script is None:
            raise InvalidValue(f"schedule {self.name!r} has no task: give a task for the agent, or a script")
        if self.missed not in MISSED_POLICIES:
            raise InvalidValue(f"missed fires {self.missed!r}: use one of {', '.join(MISSED_POLICIES)}")
        if self.overlap not in OVERLAP_POLICIES:
            raise InvalidValue(f"overlap {self.overlap!r}: use one of {', '.join(OVERLAP_POLICIES)}")
