"""What a schedule may be asked to do."""

from typing import Any

import pytest

from keryx.domain.part import TextPart
from keryx.domain.route import ORIGIN
from keryx.domain.schedule_plan import ScheduleOptions, SchedulePlan
from keryx.errors import InvalidValue


def plan(**fields: Any) -> SchedulePlan:
    wanted: dict[str, Any] = {
        "name": "News",
        "rule": "@daily",
        "zone": "Europe/Rome",
        "parts": (TextPart(text="What is new?"),),
        "route": ORIGIN,
    }
    return SchedulePlan(**(wanted | fields))


def test_a_plan_skips_what_was_missed_and_what_would_overlap_unless_told_otherwise() -> None:
    assert (plan().missed, plan().overlap, plan().options) == ("skip", "skip", ScheduleOptions())


def test_a_script_needs_no_words_for_an_agent() -> None:
    assert plan(parts=(), options=ScheduleOptions(script="backup.sh")).parts == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": " "},
        {"name": "x" * 81},
        {"parts": ()},
        {"missed": "later"},
        {"overlap": "both"},
    ],
)
def test_a_plan_that_makes_no_sense_cannot_be_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        plan(**wrong)


@pytest.mark.parametrize("wrong", [{"retries": -1}, {"retries": 11}, {"failure_route": ""}, {"script": ""}])
def test_options_that_make_no_sense_cannot_be_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        ScheduleOptions(**wrong)


def test_options_come_back_as_they_were_and_ignore_what_a_newer_version_added() -> None:
    options = ScheduleOptions(retries=3, failure_route="telegram", quiet=True, script="x", context_from=7)
    assert ScheduleOptions.from_dict(options.to_dict() | {"colour": "blue"}) == options
    assert ScheduleOptions.from_dict({}) == ScheduleOptions()
