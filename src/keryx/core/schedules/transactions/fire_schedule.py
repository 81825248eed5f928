"""Fire the next due schedule: each due instant becomes an inbox item or a recorded skip, exactly once.

The schedule's row is locked first, so only one of several gateways fires it. ``last_due_at`` and the key of the fires
prevent a second fire of an instant, even when the clock is set back.
"""

from keryx.clock import Micros
from keryx.config import Settings
from keryx.core.conversations.rules.session_key import SCHEDULE
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed, session_keys, sessions
from keryx.core.conversations.transactions.open_session import InitialSettings, open_session
from keryx.core.conversations.views.current_session import resolve_key
from keryx.core.people.tables import people
from keryx.core.schedules import tables as schedules
from keryx.core.schedules.rules.timing import DueFires, due_fires, may_overlap, next_fires, parse_rule
from keryx.core.schedules.tables import Schedule
from keryx.core.turns.transactions.inbox_items import queue_item
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """The inbox items made of a schedule's due instants, oldest first, and the number of skips."""

    schedule_id: int
    inbox_ids: tuple[int, ...]
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoneDue:
    """No schedule is due before ``next_due_at``."""

    next_due_at: Micros | None


def fire_schedule(tx: Tx, ids: Ids, *, settings: Settings) -> Fired | NoneDue:
    """Fire the longest due schedule. Call again until the result is ``NoneDue``."""
    schedule = schedules.take_due(tx)
    if schedule is None or schedule.due_at is None:
        return NoneDue(next_due_at=schedules.next_due(tx))
    try:
        rule = parse_rule(schedule.rule, zone=schedule.zone, anchor_at=schedule.anchor_at)
    except InvalidValue as error:
        # A system update can remove a time zone. Pause this schedule, so that it does not block all others.
        schedules.add_skip(tx, schedule.id, schedule.due_at, note=f"paused: {error}")
        schedules.advance(tx, schedule.id, state="paused", due_at=None, last_due_at=schedule.due_at)
        feed.add_personal_event(tx, schedule.owner_id, "schedule", schedule.id)
        return Fired(schedule_id=schedule.id, inbox_ids=(), skipped=1)
    due = due_fires(rule, last_at=schedule.due_at - 1, now=tx.now, policy=schedule.missed)
    fires, skips = _split(tx, schedule, due)
    for due_at, note in skips:
        schedules.add_skip(tx, schedule.id, due_at, note=note)
    inbox_ids: tuple[int, ...] = ()
    if fires:
        session_id = _session_of(tx, ids, schedule, settings=settings)
        inbox_ids = tuple(_fire(tx, schedule, due_at, session_id) for due_at in fires)
    coming = next_fires(rule, after=tx.now, count=1)
    schedules.advance(
        tx,
        schedule.id,
        state="active" if coming else "ended",
        due_at=coming[0] if coming else None,
        # A change of a zone's rules can remove the due instant.
        last_due_at=max(due.fires + due.skips, default=schedule.due_at),
    )
    feed.add_personal_event(tx, schedule.owner_id, "schedule", schedule.id)
    return Fired(schedule_id=schedule.id, inbox_ids=inbox_ids, skipped=len(skips))


def _split(tx: Tx, schedule: Schedule, due: DueFires) -> tuple[tuple[Micros, ...], list[tuple[Micros, str]]]:
    """Return the instants to fire, and the instants to skip with their reasons."""
    skips = [(at, "missed") for at in due.skips]
    if due.skipped_before is not None:
        skips[0] = (skips[0][0], "missed, as were all before it since the last fire")
    if may_overlap(schedule.overlap, running=schedules.has_open_fire(tx, schedule.id)):
        return due.fires, skips
    return (), skips + [(at, "the fire before it was still running") for at in due.fires]


def _session_of(tx: Tx, ids: Ids, schedule: Schedule, *, settings: Settings) -> str:
    """Lock and return the schedule's session: the given one, else its own, which the first fire opens."""
    session_id = schedule.session_id
    if session_id is None:
        source = _own_source(schedule)
        key = resolve_key(source, settings=settings)
        current = session_keys.find_key(tx, key)
        if current is None:
            owner = people.get_person(tx, schedule.owner_id)
            initial = InitialSettings(profile=settings.profile, title=schedule.name)
            return open_session(tx, ids, source=source, owner=owner, key=key, initial=initial)
        session_id = current.session_id
    sessions.lock_session(tx, session_id)
    return session_id


def _fire(tx: Tx, schedule: Schedule, due_at: Micros, session_id: str) -> int:
    inbox_id = queue_item(
        tx,
        session_id=session_id,
        kind="schedule",
        source=schedule.origin or _own_source(schedule),
        is_internal=True,
        ref=f"fire:{schedule.id}:{due_at}",
        parts=schedule.parts,
        person_id=schedule.owner_id,
        sent_at=due_at,
    )
    schedules.add_fire(tx, schedule.id, due_at, session_id=session_id, inbox_id=inbox_id)
    feed.add_event(tx, session_id, "fire", schedule.id)
    return inbox_id


def _own_source(schedule: Schedule) -> Source:
    return Source(platform=SCHEDULE, chat_id=str(schedule.id), chat_type="dm", chat_name=schedule.name)
