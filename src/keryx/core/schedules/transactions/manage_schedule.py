"""Make, change, pause, resume and end schedules.

A schedule belongs to one person, and only this person finds it. ``due_at`` is always the first instant of its rule that
was neither fired nor skipped. Instants that pass during a pause, or before a change, do not count.
"""

from dataclasses import replace

from keryx.clock import Micros
from keryx.core.conversations.rules.part import TextPart
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed, sessions
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
    """The schedule after the change."""

    schedule: Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTaken:
    """Another schedule of this person has the name; nothing changed."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HasEnded:
    """The schedule had ended; nothing changed."""

    schedule: Schedule


def create_schedule(
    tx: Tx, plan: SchedulePlan, *, person_id: PersonId, origin: Source | None, session_id: str | None = None
) -> Scheduled | NameTaken:
    """Make an active schedule of this person.

    ``origin`` is the chat that the route's ``origin`` means. The fires run in the given session, which the person must
    be able to see, else in a session of the schedule's own. Raises ``InvalidValue`` for a rule without future instants.
    """
    due_at = _first_due(parse_rule(plan.rule, zone=plan.zone, anchor_at=tx.now), plan, after=tx.now)
    _check(tx, plan, person_id=person_id, origin=origin)
    if session_id is not None:
        sessions.get_visible(tx, session_id, person_id=person_id)
    # Serialize a person's requests: two may have the same name.
    access.lock_person(tx, person_id)
    schedule_id = schedules.add_schedule(
        tx, plan, owner_id=person_id, origin=origin and origin.durable, session_id=session_id, due_at=due_at
    )
    if schedule_id is None:
        return NameTaken(name=plan.name)
    return _changed(tx, schedule_id, person_id)


def change_schedule(
    tx: Tx, schedule_id: int, plan: SchedulePlan, *, person_id: PersonId
) -> Scheduled | NameTaken | HasEnded:
    """Change a schedule's plan; a new rule counts from now, an unchanged rule continues."""
    schedule = schedules.lock_schedule(tx, schedule_id, owner_id=person_id)
    if schedule.state == "ended":
        return HasEnded(schedule=schedule)
    unchanged = (plan.rule, plan.zone) == (schedule.rule, schedule.zone)
    anchor_at = schedule.anchor_at if unchanged else tx.now
    due_at = _first_due(
        parse_rule(plan.rule, zone=plan.zone, anchor_at=anchor_at), plan, after=_settled_until(tx, schedule)
    )
    _check(tx, plan, person_id=person_id, origin=schedule.origin)
    access.lock_person(tx, person_id)
    if schedules.name_taken(tx, plan.name, owner_id=person_id, schedule_id=schedule_id):
        return NameTaken(name=plan.name)
    schedules.change_schedule(tx, schedule_id, plan, anchor_at=anchor_at, due_at=due_at)
    return _changed(tx, schedule_id, person_id)


def revise_schedule(
    tx: Tx,
    schedule_id: int,
    *,
    person_id: PersonId,
    rule: str | None = None,
    task: str | None = None,
    name: str | None = None,
) -> Scheduled | NameTaken | HasEnded:
    """Change the given parts of a schedule's plan."""
    schedule = schedules.lock_schedule(tx, schedule_id, owner_id=person_id)
    plan = replace(
        schedule.plan,
        name=schedule.name if name is None else name,
        rule=schedule.rule if rule is None else rule,
        parts=schedule.parts if task is None else (TextPart(text=task),),
    )
    return change_schedule(tx, schedule_id, plan, person_id=person_id)


def pause_schedule(tx: Tx, schedule_id: int, *, person_id: PersonId) -> Scheduled | HasEnded:
    """Pause a schedule until it is resumed; a paused schedule stays paused."""
    schedule = schedules.lock_schedule(tx, schedule_id, owner_id=person_id)
    if schedule.state != "active":
        return _unchanged(schedule)
    schedules.set_state(tx, schedule_id, "paused", due_at=None)
    return _changed(tx, schedule_id, person_id)


def resume_schedule(tx: Tx, schedule_id: int, *, person_id: PersonId) -> Scheduled | HasEnded:
    """Resume a paused schedule with its next instant; without one, end the schedule."""
    schedule = schedules.lock_schedule(tx, schedule_id, owner_id=person_id)
    if schedule.state != "paused":
        return _unchanged(schedule)
    rule = parse_rule(schedule.rule, zone=schedule.zone, anchor_at=schedule.anchor_at)
    due = next_fires(rule, after=_settled_until(tx, schedule), count=1)
    schedules.set_state(tx, schedule_id, "active" if due else "ended", due_at=due[0] if due else None)
    return _changed(tx, schedule_id, person_id)


def end_schedule(tx: Tx, schedule_id: int, *, person_id: PersonId) -> Scheduled | HasEnded:
    """End a schedule; turns that it has started continue."""
    schedule = schedules.lock_schedule(tx, schedule_id, owner_id=person_id)
    if schedule.state == "ended":
        return HasEnded(schedule=schedule)
    schedules.set_state(tx, schedule_id, "ended", due_at=None)
    return _changed(tx, schedule_id, person_id)


def _unchanged(schedule: Schedule) -> Scheduled | HasEnded:
    return HasEnded(schedule=schedule) if schedule.state == "ended" else Scheduled(schedule=schedule)


def _settled_until(tx: Tx, schedule: Schedule) -> Micros:
    """Return the time up to which no instant fires any more, even if the clock was set back."""
    return max(tx.now, schedule.last_due_at or 0)


def _first_due(rule: ScheduleRule, plan: SchedulePlan, *, after: Micros) -> Micros:
    due = next_fires(rule, after=after, count=1)
    if not due:
        raise InvalidValue(f"schedule {plan.rule!r}: that time has passed; give a time in the future")
    return due[0]


def _check(tx: Tx, plan: SchedulePlan, *, person_id: PersonId, origin: Source | None) -> None:
    zone_of(plan.zone)
    if origin is None and "origin" in plan.route.targets:
        raise InvalidValue(
            f"schedule {plan.name!r} goes to 'origin', but was not made in a chat: "
            "use local, a platform, or platform:chat"
        )
    if plan.options.context_from is not None:
        schedules.get_schedule(tx, plan.options.context_from, owner_id=person_id)


def _changed(tx: Tx, schedule_id: int, person_id: PersonId) -> Scheduled:
    feed.add_personal_event(tx, person_id, "schedule", schedule_id)
    return Scheduled(schedule=schedules.get_schedule(tx, schedule_id, owner_id=person_id))
