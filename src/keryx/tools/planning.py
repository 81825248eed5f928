"""``schedule`` and ``preview_schedule``: the person's own scheduled turns, made, changed and ended by the agent.

In a chat that others read, a schedule can be made there, and no other is named or touched.
"""

from collections.abc import Callable
from typing import Final

from keryx.clock import Micros
from keryx.domain.graphemes import one_line
from keryx.domain.json_value import JsonValue
from keryx.domain.message import TextPart
from keryx.domain.person import PersonId
from keryx.domain.route import ORIGIN
from keryx.domain.schedule import next_fires, parse_rule
from keryx.domain.schedule_plan import NAME_CHARACTERS_MAX, SchedulePlan
from keryx.domain.toolset import PLAN
from keryx.domain.turn import StepEffect
from keryx.domain.zone import datetime_of, zone_of
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import Database, ReadTx, Tx
from keryx.tools.told import PRIVATE, Offered, Told
from keryx.tools.tool import ToolFailed, Use
from keryx.transactions.manage_schedule import (
    HasEnded,
    NameTaken,
    Scheduled,
    create_schedule,
    end_schedule,
    pause_schedule,
    resume_schedule,
    revise_schedule,
)

RULE: Final = "When: five or six cron fields, @daily, 'every 2h', or a time like 2026-03-01 09:00"
ACTIONS: Final = ("add", "change", "remove", "pause", "resume")

Outcome = Scheduled | NameTaken | HasEnded


class PreviewSchedule(Told):
    """Shows when a rule would fire."""

    name = "preview_schedule"
    description = "Show the next five times at which a schedule with this rule would run, before making it."
    toolset = PLAN
    parameters = {"rule": {"type": "string", "description": RULE}}  # noqa: RUF012 - never changed

    def __init__(self, database: Database, zone: str) -> None:
        super().__init__(database)
        self._zone = zone

    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return the times, a line each."""
        return _preview(use.text("rule"), zone=self._zone, anchor_at=tx.now, now=tx.now)


class Schedule(Offered):
    """Makes, changes and ends schedules."""

    name = "schedule"
    description = (
        "Make a turn of yours run by itself at given times, with its answer sent to this chat; or change, end, pause "
        "or resume such a schedule by its number in list_schedules."
    )
    effect: StepEffect = "once"
    toolset = PLAN
    parameters = {  # noqa: RUF012 - never changed
        "action": {"type": "string", "enum": list(ACTIONS)},
        "number": {"type": "integer", "description": "Which one, for everything but add"},
        "rule": {"type": "string", "description": RULE},
        "task": {
            "type": "string",
            "description": "What you are asked at each time, understandable by itself",
        },
        "name": {"type": "string", "description": "A short name; made of the task if left out"},
    }
    optional = ("number", "rule", "task", "name")

    def __init__(self, database: Database, zone: str) -> None:
        super().__init__(database)
        self._zone = zone

    async def run(self, use: Use) -> JsonValue:
        """Do it and tell what is scheduled now."""
        work = self._work(use)

        def told(tx: Tx) -> str:
            return _told(work(tx), now=tx.now)

        try:
            return await self._database.write(told)
        except (InvalidValue, NotFound) as error:
            raise ToolFailed(str(error)) from error

    def _work(self, use: Use) -> Callable[[Tx], Outcome]:
        action, person_id = use.text("action"), PersonId(use.person_id)
        if action == "add":
            plan = self._plan(use)
            return lambda tx: create_schedule(tx, plan, person_id=person_id, origin=use.source)
        if action not in ACTIONS:
            raise ToolFailed(f"There is no action {action[:40]!r}. Use one of {', '.join(ACTIONS)}.")
        if use.audience_id is not None:
            raise ToolFailed(PRIVATE)
        if use.arguments.get("number") is None:
            raise ToolFailed("Give 'number': which schedule, as list_schedules numbers them.")
        number = use.number("number", otherwise=0, most=2**31)
        match action:
            case "change":
                rule, task, name = (use.text_if_any(each) for each in ("rule", "task", "name"))
                return lambda tx: revise_schedule(
                    tx, number, person_id=person_id, rule=rule, task=task, name=name
                )
            case "remove":
                return lambda tx: end_schedule(tx, number, person_id=person_id)
            case "pause":
                return lambda tx: pause_schedule(tx, number, person_id=person_id)
            case _:
                return lambda tx: resume_schedule(tx, number, person_id=person_id)

    def _plan(self, use: Use) -> SchedulePlan:
        task = use.text("task")
        try:
            return SchedulePlan(
                name=use.text_if_any("name") or one_line(task, NAME_CHARACTERS_MAX),
                rule=use.text("rule"),
                zone=self._zone,
                parts=(TextPart(text=task),),
                route=ORIGIN,
            )
        except InvalidValue as error:
            raise ToolFailed(str(error)) from error


def _told(outcome: Outcome, *, now: Micros) -> str:
    match outcome:
        case NameTaken():
            raise ToolFailed(
                f"There is a schedule {outcome.name!r} already; give another name, or change that one."
            )
        case HasEnded():
            raise ToolFailed(f"Schedule {outcome.schedule.id} is over for good; add a new one.")
        case Scheduled(schedule=schedule) if schedule.state != "active":
            return f"Schedule {schedule.id} ({schedule.name}) is {schedule.state}."
        case Scheduled(schedule=schedule):
            times = _preview(schedule.rule, zone=schedule.zone, anchor_at=schedule.anchor_at, now=now)
            return f"Schedule {schedule.id} ({schedule.name}) runs at:\n{times}"


def _preview(text: str, *, zone: str, anchor_at: Micros, now: Micros) -> str:
    try:
        fires = next_fires(parse_rule(text, zone=zone, anchor_at=anchor_at), after=now)
    except InvalidValue as error:
        raise ToolFailed(str(error)) from error
    if not fires:
        raise ToolFailed(f"schedule {text!r}: that time has passed; give one that is still to come")
    return "\n".join(f"{datetime_of(at, zone_of(zone)):%a %Y-%m-%d %H:%M %Z}" for at in fires)
