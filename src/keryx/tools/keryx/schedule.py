"""``schedule``: make, change and end the person's scheduled turns.

In a chat that other people read, a schedule can be made there, but no existing schedule is named or changed.
"""

from collections.abc import Callable
from typing import Final

from keryx.clock import Micros
from keryx.core.conversations.rules.message import TextPart
from keryx.core.deliveries.rules.route import ORIGIN
from keryx.core.people.rules.person import PersonId
from keryx.core.people.rules.toolset import PLAN
from keryx.core.schedules.rules.plan import NAME_CHARACTERS_MAX, SchedulePlan
from keryx.core.schedules.transactions.manage_schedule import (
    HasEnded,
    NameTaken,
    Scheduled,
    create_schedule,
    end_schedule,
    pause_schedule,
    resume_schedule,
    revise_schedule,
)
from keryx.core.values.graphemes import one_line
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import ToolFailed
from keryx.store.database import Database, Tx
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.keryx.schedule_rule import RULE, next_times
from keryx.tools.keryx.store_reader import PRIVATE
from keryx.tools.tool import ToolCall

ACTIONS: Final = ("add", "change", "remove", "pause", "resume")
NUMBER_MAX: Final = 2**31
Outcome = Scheduled | NameTaken | HasEnded


class ScheduleTool(BaseTool):
    """Makes, changes and ends schedules."""

    name = "schedule"
    description = (
        "Make a turn of yours run by itself at given times, with its answer sent to this chat; or change, end, pause "
        "or resume such a schedule by its number in list_schedules."
    )
    effect: StepEffect = "once"
    toolset = PLAN
    parameters = {  # noqa: RUF012 - never changed
        "action": Parameter(choices=ACTIONS, required=True),
        "number": Parameter(kind="integer", help="The schedule, for every action but add"),
        "rule": Parameter(help=RULE),
        "task": Parameter(help="The request that you get at each time, understandable by itself"),
        "name": Parameter(help="A short name; made of the task if left out"),
    }

    def __init__(self, database: Database, zone: str) -> None:
        self._database = database
        self._zone = zone

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Carry out the action and return the state of the schedule."""
        act = self._action(call, given)
        return await self._database.write(lambda tx: _answer(act(tx), now=tx.now))

    def _action(self, call: ToolCall, given: Arguments) -> Callable[[Tx], Outcome]:
        person_id = PersonId(call.person_id)
        if given.text("action") == "add":
            plan = self._plan(given)
            return lambda tx: create_schedule(tx, plan, person_id=person_id, origin=call.source)
        if call.audience_id is not None:
            raise ToolFailed(PRIVATE)
        number = given.needed_number("number", high=NUMBER_MAX)
        if given.text("action") == "change":
            rule, task, name = (given.text_or_none(each) for each in ("rule", "task", "name"))
            return lambda tx: revise_schedule(
                tx, number, person_id=person_id, rule=rule, task=task, name=name
            )
        act = {"remove": end_schedule, "pause": pause_schedule, "resume": resume_schedule}[
            given.text("action")
        ]
        return lambda tx: act(tx, number, person_id=person_id)

    def _plan(self, given: Arguments) -> SchedulePlan:
        task = given.needed_text("task")
        return SchedulePlan(
            name=given.text_or_none("name") or one_line(task, NAME_CHARACTERS_MAX),
            rule=given.needed_text("rule"),
            zone=self._zone,
            parts=(TextPart(text=task),),
            route=ORIGIN,
        )


def _answer(outcome: Outcome, *, now: Micros) -> str:
    match outcome:
        case NameTaken():
            raise ToolFailed(
                f"There is a schedule {outcome.name!r} already; give another name, or change that one."
            )
        case HasEnded():
            raise ToolFailed(f"Schedule {outcome.schedule.id} has ended for good; add a new one.")
        case Scheduled(schedule=schedule) if schedule.state != "active":
            return f"Schedule {schedule.id} ({schedule.name}) is {schedule.state}."
        case Scheduled(schedule=schedule):
            times = next_times(schedule.rule, zone=schedule.zone, anchor_at=schedule.anchor_at, now=now)
            return f"Schedule {schedule.id} ({schedule.name}) runs at:\n{times}"
