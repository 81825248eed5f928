"""Make, change, pause, resume and end schedules.

A schedule belongs to one person and is found by nobody else. ``due_at`` is always the first instant of its rule that
is not accounted for; what passed while it was paused, or before it was changed, is not owed.
"""

from keryx.clock import Micros
from keryx.core.conversations.rules.part import TextPart
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed, sessions
from keryx.core.deliveries.rules.route import stored_route
from keryx.core.people.rules.person import PersonId
from keryx.core.people.tables import access
from keryx.core.schedules import tables as schedules
from keryx.core.schedules.rules.plan import SchedulePlan
from keryx.core.schedules.rules.timing import ScheduleRule, next_fires, parse_rule
from keryx.core.schedules.tables import Schedule
from keryx.core.values.time_zone import zone_of
from keryx.errors import InvalidValue
from keryx.store.database import Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """The schedule as it stands now."""

    schedule: Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTaken:
    """Another schedule of this person is called so; nothing changed."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HasEnded:
    """The schedule is over for good; nothing changed."""

    schedule: Schedule


def create_schedule(
    tx: Tx, plan: SchedulePlan, *, person_id: PersonId, origin: Source | None, session_id: str | None = None
) -> Scheduled | NameTaken:
    """Make an active schedule of this person.

    ``origin`` is the place the route's ``origin`` means. Its fires run in the given session, which the person must be
    able to see, else in one of the schedule's own. Raises ``InvalidValue`` for a rule that never fires from now on.
    """
    due_at = _first_due(parse_rule(plan.rule, zone=plan.zone, anchor_at=tx.now), plan, after=tx.now)
    _check(tx, plan, person_id=person_id, origin=origin)
    if session_id is not None:
        sessions.get_visible(tx, session_id, person_id=person_id)
    # Two requests of one person for the same name are judged one after the other.
    access.lock_person(tx, person_id)
    schedule_id = schedules.add_schedule(
        tx, plan, owner_id=person_id, origin=origin and origin.durable, session_id=session_id, due_at=due_at
    )
    if schedule_id is None:
        return NameTaken(name=plan.name)
    return _told(tx, schedule_id, person_id)


def change_schedule(
    tx: Tx, schedule_id: int, plan: SchedulePlan, *, person_id: PersonId
) -> Scheduled | NameTaken | HasEnded:
    """Give a schedule a new plan; a new rule counts from now, an unchanged one goes on as it did."""
    schedule = schedules.lock_schedule(tx, schedule_id, owner_id=person_id)
    if schedule.state == "ended":
        return HasEnded(schedule=schedule)
    unchanged = (plan.rule, plan.zone) == (schedule.rule, schedule.zone)
    anchor_at = schedule.anchor_at if unchanged else tx.now
    due_at = _first_due(
        parse_rule(plan.rule, zone=plan.zone, anchor_at=anchor_at), plan, after=_accounted(tx, schedule)
    )
    _check(tx, plan, person_id=person_id, origin=schedule.origin)
    access.lock_person(tx, person_id)
    if schedules.name_taken(tx, plan.name, owner_id=person_id, schedule_id=schedule_id):
        return NameTaken(name=plan.name)
    schedules.change_schedule(tx, schedule_id, plan, anchor_at=anchor_at, due_at=due_at)
    return _told(tx, schedule_id, person_id)


def revise_schedule(
    tx: Tx,
    schedule_id: int,
    *,
    person_id: PersonId,
    rule: str | None = None,
    task: str | None = None,
    name: str | None = None,
) -> Scheduled | NameTaken | HasEnded:
    """Change what is given of a schedule, and leave the rest of its plan as it is."""
    schedule = schedules.lock_schedule(tx, schedule_id, owner_id=person_id)
    plan = SchedulePlan(
        name=schedule.name if name is None else name,
        rule=schedule.rule if rule is None else rule,
        zone=schedule.zone,
        parts=schedule.parts if task is None else (TextPart(text=task),),
        route=stored_route(schedule.route),
        missed=schedule.missed,
        overlap=schedule.overlap,
        options=schedule.options,
    )
    return change_schedule(tx, schedule_id, plan, person_id=person_id)


def pause_schedule(tx: Tx, schedule_id: int, *, person_id: PersonId) -> Scheduled | HasEnded:
    """Let a schedule rest until it is resumed; one that rests already goes on resting."""
    schedule = schedules.lock_schedule(tx, schedule_id, owner_id=person_id)
    if schedule.state == "ended":
        return HasEnded(schedule=schedule)
    if schedule.state == "paused":
        return Scheduled(schedule=schedule)
    schedules.set_state(tx, schedule_id, "paused", due_at=None)
    return _told(tx, schedule_id, person_id)


def resume_schedule(tx: Tx, schedule_id: int, *, person_id: PersonId) -> Scheduled | HasEnded:
    """Let a resting schedule go on with its next instant; one whose last instant has passed ends."""
    schedule = schedules.lock_schedule(tx, schedule_id, owner_id=person_id)
    if schedule.state == "ended":
        return HasEnded(schedule=schedule)
    if schedule.state == "active":
        return Scheduled(schedule=schedule)
    rule = parse_rule(schedule.rule, zone=schedule.zone, anchor_at=schedule.anchor_at)
    due = next_fires(rule, after=_accounted(tx, schedule), count=1)
    schedules.set_state(tx, schedule_id, "active" if due else "ended", due_at=due[0] if due else None)
    return _told(tx, schedule_id, person_id)


def end_schedule(tx: Tx, schedule_id: int, *, person_id: PersonId) -> Scheduled | HasEnded:
    """Let a schedule never fire again; what it fired already runs to its end."""
    schedule = schedules.lock_schedule(tx, schedule_id, owner_id=person_id)
    if schedule.state == "ended":
        return HasEnded(schedule=schedule)
    schedules.set_state(tx, schedule_id, "ended", due_at=None)
    return _told(tx, schedule_id, person_id)


def _accounted(tx: Tx, schedule: Schedule) -> Micros:
    """Until when nothing is owed: a clock that was set back must not fire an instant a second time."""
    return max(tx.now, schedule.last_due_at or 0)


def _first_due(rule: ScheduleRule, plan: SchedulePlan, *, after: Micros) -> Micros:
    due = next_fires(rule, after=after, count=1)
    if not due:
        raise InvalidValue(f"schedule {plan.rule!r}: that time has passed; give one that is still to come")
    return due[0]


def _check(tx: Tx, plan: SchedulePlan, *, person_id: PersonId, origin: Source | None) -> None:
    zone_of(plan.zone)
    if origin is None and "origin" in plan.route.targets:
        raise InvalidValue(
            f"schedule {plan.name!r} goes to 'origin', but was made nowhere one can answer to: "
            "use local, a platform, or platform:chat"
        )
    if plan.options.context_from is not None:
        schedules.get_schedule(tx, plan.options.context_from, owner_id=person_id)


def _told(tx: Tx, schedule_id: int, person_id: PersonId) -> Scheduled:
    feed.add_personal_event(tx, person_id, "schedule", schedule_id)
    return Scheduled(schedule=schedules.get_schedule(tx, schedule_id, owner_id=person_id))
