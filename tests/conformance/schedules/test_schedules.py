"""Schedules: changes, and one fire for each instant."""

from functools import partial
from typing import Any

import anyio
import pytest

from keryx.clock import DAY, HOUR, MINUTE
from keryx.config import Settings
from keryx.core.conversations.rules.part import TextPart
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.tables import feed, sessions
from keryx.core.conversations.transactions.open_session import open_session
from keryx.core.deliveries.rules.route import ORIGIN, Route, ToHome
from keryx.core.people.rules.person import PersonId
from keryx.core.people.tables import people
from keryx.core.people.transactions.manage_access import block_person
from keryx.core.schedules import tables as schedules
from keryx.core.schedules.rules.plan import ScheduleOptions, SchedulePlan
from keryx.core.schedules.tables import Schedule
from keryx.core.schedules.transactions.fire_schedule import Fired, NoneDue, fire_schedule
from keryx.core.schedules.transactions.manage_schedule import (
    HasEnded,
    NameTaken,
    Scheduled,
    change_schedule,
    create_schedule,
    end_schedule,
    pause_schedule,
    resume_schedule,
)
from keryx.core.turns.tables import inbox
from keryx.errors import InvalidValue, NotFound
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.testing.clock import FakeClock


def plan(**fields: Any) -> SchedulePlan:
    wanted: dict[str, Any] = {
        "name": "News",
        "rule": "every 1h",
        "zone": "Europe/Rome",
        "parts": (TextPart(text="What is new?"),),
        "route": ORIGIN,
    }
    return SchedulePlan(**(wanted | fields))


async def owner_of(database: Database) -> PersonId:
    return (await database.write(people.ensure_owner)).id


async def scheduled(database: Database, *, session_id: str | None = None, **fields: Any) -> Schedule:
    owner_id = await owner_of(database)
    outcome = await database.write(
        lambda tx: create_schedule(
            tx, plan(**fields), person_id=owner_id, origin=LOCAL_CLI, session_id=session_id
        )
    )
    assert isinstance(outcome, Scheduled)
    return outcome.schedule


async def look(database: Database, schedule: Schedule) -> Schedule:
    return await database.read(lambda tx: schedules.get_schedule(tx, schedule.id, owner_id=schedule.owner_id))


async def fire(database: Database, ids: Ids) -> Fired:
    outcome = await database.write(lambda tx: fire_schedule(tx, ids, settings=Settings()))
    assert isinstance(outcome, Fired)
    return outcome


async def fires_of(database: Database, schedule: Schedule) -> list[schedules.Fire]:
    return await database.read(lambda tx: schedules.list_fires(tx, schedule.id, limit=500))


async def test_a_new_schedule_is_due_at_the_first_instant_of_its_rule(
    database: Database, clock: FakeClock
) -> None:
    options = ScheduleOptions(retries=2, quiet=True)
    schedule = await scheduled(database, missed="all", overlap="queue", options=options)
    assert (schedule.state, schedule.due_at) == ("active", clock.now() + HOUR)
    assert (schedule.parts, schedule.origin, schedule.options) == (plan().parts, LOCAL_CLI, options)
    assert (schedule.missed, schedule.overlap, schedule.route) == ("all", "queue", "origin")


async def test_a_name_is_given_once_for_each_person(database: Database) -> None:
    await scheduled(database)
    owner_id = await owner_of(database)
    again = await database.write(lambda tx: create_schedule(tx, plan(), person_id=owner_id, origin=LOCAL_CLI))
    assert again == NameTaken(name="News")
    other = await database.write(lambda tx: people.add_person(tx, name="Ana", role="member"))
    made = await database.write(lambda tx: create_schedule(tx, plan(), person_id=other.id, origin=LOCAL_CLI))
    assert isinstance(made, Scheduled)


async def test_a_schedule_that_cannot_work_is_refused_when_it_is_written(database: Database) -> None:
    owner_id = await owner_of(database)

    async def refused(wrong: SchedulePlan, origin: Source | None = LOCAL_CLI) -> None:
        with pytest.raises(InvalidValue):
            await database.write(lambda tx: create_schedule(tx, wrong, person_id=owner_id, origin=origin))

    await refused(plan(rule="whenever"))
    await refused(plan(zone="Mars/Base"))
    await refused(plan(rule="2001-01-01 10:00"))
    await refused(plan(), origin=None)
    with pytest.raises(NotFound):
        await scheduled(database, options=ScheduleOptions(context_from=99))
    with pytest.raises(NotFound):
        await scheduled(database, session_id="20260101_000000_00000000")


async def test_another_persons_schedule_is_not_found(database: Database) -> None:
    schedule = await scheduled(database)
    other = await database.write(lambda tx: people.add_person(tx, name="Ana", role="member"))
    with pytest.raises(NotFound):
        await database.write(lambda tx: pause_schedule(tx, schedule.id, person_id=other.id))


async def test_instants_during_a_pause_do_not_fire_later(
    database: Database, clock: FakeClock, ids: Ids
) -> None:
    schedule = await scheduled(database, missed="all")
    owner_id = schedule.owner_id
    for _ in range(2):
        paused = await database.write(lambda tx: pause_schedule(tx, schedule.id, person_id=owner_id))
        assert isinstance(paused, Scheduled)
        assert paused.schedule.state == "paused"
    clock.advance(3 * HOUR + MINUTE)
    assert await database.write(lambda tx: fire_schedule(tx, ids, settings=Settings())) == NoneDue(
        next_due_at=None
    )
    for _ in range(2):
        resumed = await database.write(lambda tx: resume_schedule(tx, schedule.id, person_id=owner_id))
        assert isinstance(resumed, Scheduled)
        assert (resumed.schedule.state, resumed.schedule.due_at) == ("active", clock.now() - MINUTE + HOUR)


async def test_resuming_after_the_only_instant_ends_the_schedule(
    database: Database, clock: FakeClock
) -> None:
    schedule = await scheduled(database, rule="2026-12-01 10:00")
    await database.write(lambda tx: pause_schedule(tx, schedule.id, person_id=schedule.owner_id))
    clock.advance(365 * DAY)
    resumed = await database.write(lambda tx: resume_schedule(tx, schedule.id, person_id=schedule.owner_id))
    assert isinstance(resumed, Scheduled)
    assert (resumed.schedule.state, resumed.schedule.due_at) == ("ended", None)


async def test_an_ended_schedule_stays_as_it_is(database: Database) -> None:
    schedule = await scheduled(database)
    owner_id = schedule.owner_id
    ended = await database.write(lambda tx: end_schedule(tx, schedule.id, person_id=owner_id))
    assert isinstance(ended, Scheduled)
    assert (ended.schedule.state, ended.schedule.due_at) == ("ended", None)
    for again in (end_schedule, pause_schedule, resume_schedule):
        outcome = await database.write(partial(again, schedule_id=schedule.id, person_id=owner_id))
        assert outcome == HasEnded(schedule=ended.schedule)
    changed = await database.write(lambda tx: change_schedule(tx, schedule.id, plan(), person_id=owner_id))
    assert changed == HasEnded(schedule=ended.schedule)


async def test_a_changed_rule_counts_from_now_and_an_unchanged_one_continues(
    database: Database, clock: FakeClock
) -> None:
    schedule = await scheduled(database)
    clock.advance(10 * MINUTE)

    async def change(new: SchedulePlan) -> Schedule:
        outcome = await database.write(
            lambda tx: change_schedule(tx, schedule.id, new, person_id=schedule.owner_id)
        )
        assert isinstance(outcome, Scheduled)
        return outcome.schedule

    renamed = await change(plan(name="Morning news", route=Route(targets=(ToHome(platform="telegram"),))))
    assert (renamed.name, renamed.route, renamed.due_at) == ("Morning news", "telegram", schedule.due_at)
    quicker = await change(plan(rule="every 5m"))
    assert (quicker.name, quicker.due_at) == ("News", clock.now() + 5 * MINUTE)


async def test_a_schedule_cannot_take_the_name_of_another(database: Database) -> None:
    await scheduled(database)
    other = await scheduled(database, name="Weather")
    outcome = await database.write(lambda tx: change_schedule(tx, other.id, plan(), person_id=other.owner_id))
    assert outcome == NameTaken(name="News")
    assert (await look(database, other)).name == "Weather"


async def test_nothing_is_fired_before_its_time(database: Database, clock: FakeClock, ids: Ids) -> None:
    schedule = await scheduled(database)
    clock.advance(HOUR - 1)
    assert await database.write(lambda tx: fire_schedule(tx, ids, settings=Settings())) == NoneDue(
        next_due_at=schedule.due_at
    )


async def test_a_fire_is_an_inbox_item_in_the_schedules_own_session(
    database: Database, clock: FakeClock, ids: Ids
) -> None:
    schedule = await scheduled(database, overlap="queue")
    clock.advance(HOUR)
    first = await fire(database, ids)
    item = await database.read(lambda tx: inbox.find_item(tx, first.inbox_ids[0]))
    assert item is not None
    assert (item.kind, item.state, item.platform, item.account) == ("schedule", "ready", "", "")
    assert item.ref == f"fire:{schedule.id}:{schedule.due_at}"
    assert (item.parts, item.person_id, item.source) == (plan().parts, schedule.owner_id, LOCAL_CLI)
    session = await database.read(lambda tx: sessions.get_session(tx, item.session_id))
    assert (session.platform, session.title, session.owner_id) == ("schedule", "News", schedule.owner_id)
    [made] = await fires_of(database, schedule)
    assert made.inbox_id == item.id

    clock.advance(HOUR)
    second = await fire(database, ids)
    later = await database.read(lambda tx: inbox.find_item(tx, second.inbox_ids[0]))
    assert later is not None
    assert later.session_id == item.session_id
    events = await database.read(
        lambda tx: feed.list_of_session(tx, session_id=item.session_id, after_number=0, limit=50)
    )
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert [event.subject for event in events if event.kind == "fire"] == [schedule.id] * 2


async def test_a_fire_runs_in_the_session_it_was_made_for(
    database: Database, clock: FakeClock, ids: Ids
) -> None:
    owner = await database.write(people.ensure_owner)
    session_id = await database.write(lambda tx: open_session(tx, ids, source=LOCAL_CLI, owner=owner))
    schedule = await scheduled(database, session_id=session_id)
    clock.advance(HOUR)
    await fire(database, ids)
    [only] = await fires_of(database, schedule)
    assert (only.session_id, only.state) == (session_id, "fired")


@pytest.mark.parametrize(
    ("missed", "expected"),
    [("skip", (0, 5)), ("once", (1, 4)), ("all", (5, 0))],
)
async def test_missed_instants_follow_the_policy_and_are_all_recorded(
    database: Database, clock: FakeClock, ids: Ids, *, missed: str, expected: tuple[int, int]
) -> None:
    fired, skipped = expected
    schedule = await scheduled(database, missed=missed)
    clock.advance(5 * HOUR + 2 * MINUTE)
    outcome = await fire(database, ids)
    assert (len(outcome.inbox_ids), outcome.skipped) == expected
    rows = await fires_of(database, schedule)
    assert [row.due_at for row in reversed(rows)] == [
        schedule.created_at + number * HOUR for number in range(1, 6)
    ]
    assert [row.state for row in rows] == ["fired"] * fired + ["skipped"] * skipped
    after = await look(database, schedule)
    assert (after.due_at, after.last_due_at) == (schedule.created_at + 6 * HOUR, rows[0].due_at)
    outcome_then = await database.write(lambda tx: fire_schedule(tx, ids, settings=Settings()))
    assert outcome_then == NoneDue(next_due_at=after.due_at)


async def test_a_year_of_missed_minutes_is_summed_up(database: Database, clock: FakeClock, ids: Ids) -> None:
    schedule = await scheduled(database, rule="every 1m", missed="once")
    clock.advance(365 * DAY)
    outcome = await fire(database, ids)
    assert (len(outcome.inbox_ids), outcome.skipped) == (1, 100)
    rows = await fires_of(database, schedule)
    assert rows[-1].note == "missed, as were all before it since the last fire"


async def test_an_overlapping_fire_is_skipped_until_the_one_before_has_ended(
    database: Database, clock: FakeClock, ids: Ids
) -> None:
    schedule = await scheduled(database)
    clock.advance(HOUR)
    first = await fire(database, ids)
    clock.advance(HOUR)
    second = await fire(database, ids)
    assert (second.inbox_ids, second.skipped) == ((), 1)
    [skip, _] = await fires_of(database, schedule)
    assert (skip.state, skip.note) == ("skipped", "the fire before it was still running")

    await database.write(lambda tx: inbox.finish(tx, first.inbox_ids[0], fate="answered"))
    clock.advance(HOUR)
    assert len((await fire(database, ids)).inbox_ids) == 1


async def test_a_fires_state_follows_its_inbox_item(database: Database, clock: FakeClock, ids: Ids) -> None:
    schedule = await scheduled(database)
    clock.advance(HOUR)
    [inbox_id] = (await fire(database, ids)).inbox_ids
    ended = await database.write(lambda tx: schedules.end_fire_of_inbox(tx, inbox_id, "failed", "no model"))
    [row] = await fires_of(database, schedule)
    assert ended == schedule.id
    assert (row.state, row.note, row.ended_at) == ("failed", "no model", clock.now())
    again = await database.write(lambda tx: schedules.end_fire_of_inbox(tx, inbox_id, "finished"))
    assert again is None


async def test_one_instant_fires_once_and_ends_the_schedule(
    database: Database, clock: FakeClock, ids: Ids
) -> None:
    schedule = await scheduled(database, rule="2026-12-01 10:00", missed="once")
    clock.advance(365 * DAY)
    assert len((await fire(database, ids)).inbox_ids) == 1
    after = await look(database, schedule)
    assert (after.state, after.due_at, after.last_due_at) == ("ended", None, schedule.due_at)


async def test_a_clock_set_back_fires_no_instant_twice(
    database: Database, clock: FakeClock, ids: Ids
) -> None:
    schedule = await scheduled(database, overlap="queue")
    clock.advance(2 * HOUR)
    await fire(database, ids)
    clock.set_wall(clock.now() - 2 * HOUR)
    await database.write(lambda tx: pause_schedule(tx, schedule.id, person_id=schedule.owner_id))
    resumed = await database.write(lambda tx: resume_schedule(tx, schedule.id, person_id=schedule.owner_id))
    assert isinstance(resumed, Scheduled)
    assert resumed.schedule.due_at == schedule.created_at + 3 * HOUR


async def test_a_blocked_persons_schedules_do_not_fire(
    database: Database, clock: FakeClock, ids: Ids
) -> None:
    owner_id = await owner_of(database)
    ana = await database.write(lambda tx: people.add_person(tx, name="Ana", role="member"))
    await database.write(lambda tx: create_schedule(tx, plan(), person_id=ana.id, origin=LOCAL_CLI))
    await database.write(lambda tx: block_person(tx, ana.id, by=owner_id))
    clock.advance(HOUR)
    assert await database.write(lambda tx: fire_schedule(tx, ids, settings=Settings())) == NoneDue(
        next_due_at=None
    )


async def test_a_schedule_whose_rule_no_longer_parses_is_paused_and_blocks_no_other(
    database: Database, clock: FakeClock, ids: Ids
) -> None:
    broken = await scheduled(database)
    # As written on a system with a zone that this one does not have.
    await database.write(
        lambda tx: schedules.change_schedule(
            tx,
            broken.id,
            plan(rule="@hourly", zone="Atlantis/Capital"),
            anchor_at=broken.anchor_at,
            due_at=broken.anchor_at + 1,
        )
    )
    other = await scheduled(database, name="Weather")
    clock.advance(HOUR)
    assert await fire(database, ids) == Fired(schedule_id=broken.id, inbox_ids=(), skipped=1)
    assert (await look(database, broken)).state == "paused"
    [row] = await fires_of(database, broken)
    assert row.note is not None
    assert "Atlantis" in row.note
    assert (await fire(database, ids)).schedule_id == other.id


async def test_an_instant_that_a_change_of_the_zone_removes_is_skipped(
    database: Database, clock: FakeClock, ids: Ids
) -> None:
    schedule = await scheduled(database)
    stale = schedule.anchor_at + MINUTE
    await database.write(lambda tx: schedules.set_state(tx, schedule.id, "active", due_at=stale))
    clock.advance(2 * MINUTE)
    assert await fire(database, ids) == Fired(schedule_id=schedule.id, inbox_ids=(), skipped=0)
    assert (await look(database, schedule)).due_at == schedule.due_at


async def test_racing_gateways_fire_each_schedule_once(
    database: Database, store_address: str, clock: FakeClock
) -> None:
    made = [await scheduled(database, name=f"number {number}") for number in range(6)]
    clock.advance(HOUR)
    other = open_database(store_address, clock=clock)
    fired: list[int] = []

    async def gateway(store: Database, seed: int) -> None:
        seeded = Ids(seed=seed)
        # A gateway that finds the last schedule locked would try again a moment later.
        while isinstance(
            outcome := await store.write(lambda tx: fire_schedule(tx, seeded, settings=Settings())), Fired
        ):
            fired.extend([outcome.schedule_id] * len(outcome.inbox_ids))

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(gateway, database if number % 2 else other, number)
    await other.close()
    assert sorted(fired) == sorted(schedule.id for schedule in made)
