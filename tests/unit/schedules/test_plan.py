"""Validation of schedule plans and options."""

from dataclasses import asdict
from typing import Any

import pytest

from keryx.core.conversations.rules.part import TextPart
from keryx.core.deliveries.rules.route import ORIGIN
from keryx.core.schedules.rules.plan import ScheduleOptions, SchedulePlan
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


def test_a_plan_skips_missed_and_overlapping_fires_by_default() -> None:
    assert (plan().missed, plan().overlap, plan().options) == ("skip", "skip", ScheduleOptions())


def test_a_plan_with_a_script_needs_no_parts() -> None:
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
def test_an_invalid_plan_cannot_be_constructed(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        plan(**wrong)


@pytest.mark.parametrize("wrong", [{"retries": -1}, {"retries": 11}, {"failure_route": ""}, {"script": ""}])
def test_invalid_options_cannot_be_constructed(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        ScheduleOptions(**wrong)


def test_options_are_read_back_unchanged_and_ignore_keys_of_a_newer_version() -> None:
    options = ScheduleOptions(retries=3, failure_route="telegram", quiet=True, script="x", context_from=7)
    assert ScheduleOptions.from_dict(asdict(options) | {"colour": "blue"}) == options
    assert ScheduleOptions.from_dict({}) == ScheduleOptions()
