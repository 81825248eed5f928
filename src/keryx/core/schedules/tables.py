"""Schedules and their fires: one row for each instant that was fired or skipped."""

from dataclasses import asdict
from typing import Literal, NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.message import Part, decode_parts, encode_parts
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.route import stored_route
from keryx.core.people.rules.person import PersonId
from keryx.core.schedules.rules.plan import ScheduleOptions, SchedulePlan
from keryx.core.schedules.rules.timing import MissedPolicy, OverlapPolicy
from keryx.errors import NotFound
from keryx.store.codec import clean_text, from_json, source_from_json, source_to_json, to_json
from keryx.store.database import ReadTx, Tx

ScheduleState = Literal["active", "paused", "ended"]
FireState = Literal["fired", "finished", "failed", "skipped"]


class Schedule(NamedTuple):
    """A schedule."""

    id: int
    owner_id: PersonId
    name: str
    state: ScheduleState
    rule: str
    zone: str
    body: str
    route: str
    origin_json: str | None
    session_id: str | None
    missed: MissedPolicy
    overlap: OverlapPolicy
    options_json: str
    anchor_at: Micros
    due_at: Micros | None
    last_due_at: Micros | None
    created_at: Micros
    changed_at: Micros

    @property
    def parts(self) -> tuple[Part, ...]:
        """The task at each fire."""
        return decode_parts(self.body)

    @property
    def origin(self) -> Source | None:
        """The chat where the schedule was made, if replies can go there."""
        return None if self.origin_json is None else source_from_json(self.origin_json)

    @property
    def options(self) -> ScheduleOptions:
        """The rarely used options."""
        return ScheduleOptions.from_dict(from_json(self.options_json))

    @property
    def plan(self) -> SchedulePlan:
        """The settings that a person chose; ``_columns`` is the inverse."""
        return SchedulePlan(
            name=self.name,
            rule=self.rule,
            zone=self.zone,
            parts=self.parts,
            route=stored_route(self.route),
            missed=self.missed,
            overlap=self.overlap,
            options=self.options,
        )


class Fire(NamedTuple):
    """One fired or skipped instant of a schedule."""

    schedule_id: int
    due_at: Micros
    state: FireState
    note: str | None
    session_id: str | None
    inbox_id: int | None
    fired_at: Micros
    ended_at: Micros | None


def add_schedule(
    tx: Tx,
    plan: SchedulePlan,
    *,
    owner_id: int,
    origin: Source | None,
    session_id: str | None,
    due_at: Micros,
) -> int | None:
    """Add an active schedule that counts from now; return its id, or None if the name is taken."""
    found: int | None = tx.value(
        "schedules.add",
        owner_id=owner_id,
        origin=None if origin is None else source_to_json(origin),
        session_id=session_id,
        due_at=due_at,
        **_columns(plan),
    )
    return found


def get_schedule(tx: ReadTx, schedule_id: int, *, owner_id: int) -> Schedule:
    """Return a schedule of this person; another person's is not found."""
    return _schedule(tx, "schedules.find", schedule_id, owner_id)


def lock_schedule(tx: Tx, schedule_id: int, *, owner_id: int) -> Schedule:
    """Lock a schedule of this person and return it."""
    return _schedule(tx, "schedules.lock", schedule_id, owner_id)


def list_schedules(tx: ReadTx, *, owner_id: int) -> list[Schedule]:
    """Return a person's schedules that have not ended, oldest first."""
    return tx.all(Schedule, "schedules.list_of_person", owner_id=owner_id)


def name_taken(tx: ReadTx, name: str, *, owner_id: int, schedule_id: int) -> bool:
    """Return whether another schedule of this person has the name."""
    return tx.exists(
        "schedules.find_named", name=clean_text(name), owner_id=owner_id, schedule_id=schedule_id
    )


def change_schedule(
    tx: Tx, schedule_id: int, plan: SchedulePlan, *, anchor_at: Micros, due_at: Micros
) -> None:
    """Change the plan of a schedule."""
    tx.run("schedules.change", schedule_id=schedule_id, anchor_at=anchor_at, due_at=due_at, **_columns(plan))


def set_state(tx: Tx, schedule_id: int, state: ScheduleState, *, due_at: Micros | None) -> None:
    """Set the state of a schedule and its next due instant."""
    tx.run("schedules.set_state", schedule_id=schedule_id, state=state, due_at=due_at)


def take_due(tx: Tx) -> Schedule | None:
    """Lock the longest due schedule and return it, or None."""
    return tx.one(Schedule, "schedules.take_due")


def next_due(tx: ReadTx) -> Micros | None:
    """Return when the next active schedule is due, or None."""
    found: Micros | None = tx.value("schedules.next_due")
    return found


def advance(
    tx: Tx, schedule_id: int, *, state: ScheduleState, due_at: Micros | None, last_due_at: Micros
) -> None:
    """Record that all instants up to ``last_due_at`` were fired or skipped, and when the next one is."""
    tx.run("schedules.advance", schedule_id=schedule_id, state=state, due_at=due_at, last_due_at=last_due_at)


def add_fire(tx: Tx, schedule_id: int, due_at: Micros, *, session_id: str, inbox_id: int) -> None:
    """Record a fired instant and its inbox item."""
    run = {"state": "fired", "note": None, "session_id": session_id, "inbox_id": inbox_id, "ended_at": None}
    tx.run("schedules.add_fire", schedule_id=schedule_id, due_at=due_at, **run)


def add_skip(tx: Tx, schedule_id: int, due_at: Micros, *, note: str) -> None:
    """Record a skipped instant and the reason."""
    skip = {
        "state": "skipped",
        "note": clean_text(note),
        "session_id": None,
        "inbox_id": None,
        "ended_at": tx.now,
    }
    tx.run("schedules.add_fire", schedule_id=schedule_id, due_at=due_at, **skip)


def has_open_fire(tx: ReadTx, schedule_id: int) -> bool:
    """Return whether an earlier fire still waits or runs."""
    return tx.exists("schedules.find_open_fire", schedule_id=schedule_id)


def end_fire_of_inbox(
    tx: Tx, inbox_id: int, state: Literal["finished", "failed"], note: str | None = None
) -> int | None:
    """End the open fire that made an inbox item and return its schedule's id; return None without such a fire."""
    schedule_id: int | None = tx.value(
        "schedules.end_fire", inbox_id=inbox_id, state=state, note=clean_text(note)
    )
    return schedule_id


def list_fires(tx: ReadTx, schedule_id: int, *, limit: int) -> list[Fire]:
    """Return the fires and skips of a schedule, newest first."""
    return tx.all(Fire, "schedules.list_fires", schedule_id=schedule_id, limit=limit)


def _schedule(tx: ReadTx, statement: str, schedule_id: int, owner_id: int) -> Schedule:
    schedule = tx.one(Schedule, statement, schedule_id=schedule_id, owner_id=owner_id)
    if schedule is None:
        raise NotFound(f"There is no schedule {schedule_id} of yours.")
    return schedule


def _columns(plan: SchedulePlan) -> dict[str, str]:
    return {
        "name": clean_text(plan.name),
        "rule": clean_text(plan.rule),
        "zone": plan.zone,
        "parts": encode_parts(plan.parts),
        "route": clean_text(str(plan.route)),
        "missed": plan.missed,
        "overlap": plan.overlap,
        "options": to_json(asdict(plan.options)),
    }


def move_to_person(tx: Tx, *, from_person_id: int, to_person_id: int) -> None:
    """Give a person's schedules to another person."""
    tx.run("schedules.move_to_person", from_person_id=from_person_id, to_person_id=to_person_id)


def forget_session(tx: Tx, session_id: str) -> None:
    """Remove a session, and the inbox items in it, from fires and schedules; these rows stay."""
    tx.run("schedules.forget_runs", session_id=session_id)
    tx.run("schedules.forget_session", session_id=session_id)
