"""Promises of the tables: streams without gaps, and rows that only their audience can find."""

import pytest

from keryx.core.conversations.rules.branch import Segment
from keryx.core.conversations.rules.event import START
from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.tables import feed, messages, session_keys, sessions
from keryx.core.people.tables import people
from keryx.core.turns.tables import inbox
from keryx.errors import NotFound
from keryx.store.database import Database, RaceLost, Tx
from keryx.testing.builders import dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    return stage


async def test_missing_rows_are_not_found(stage: Stage) -> None:
    with pytest.raises(NotFound):
        await stage.look(lambda tx: sessions.get_session(tx, "nowhere"))
    with pytest.raises(NotFound):
        await stage.do(lambda tx: sessions.lock_session(tx, "nowhere"))
    with pytest.raises(NotFound):
        await stage.look(lambda tx: people.get_person(tx, 99))
    with pytest.raises(NotFound):
        await stage.do(lambda tx: feed.add_event(tx, "nowhere", "turn"))
    with pytest.raises(NotFound):
        await stage.do(lambda tx: feed.add_personal_event(tx, 99, "access"))
    assert await stage.look(people.find_owner) is None
    assert await stage.look(lambda tx: session_keys.find_key(tx, SessionKey("none"))) is None


async def test_an_empty_feed_ends_where_it_starts(stage: Stage) -> None:
    assert await stage.look(feed.end) == START


async def test_the_facts_of_a_session_are_numbered_without_a_gap(stage: Stage) -> None:
    session_id = await stage.exchange("one")
    events = await stage.look(
        lambda tx: feed.list_of_session(tx, session_id=session_id, after_number=0, limit=100)
    )
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert [event.kind for event in events][:2] == ["session.opened", "inbox"]
    later = await stage.look(
        lambda tx: feed.list_of_session(tx, session_id=session_id, after_number=2, limit=1)
    )
    assert later == [events[2]]


async def test_a_person_reads_only_what_they_may_see_page_by_page(stage: Stage) -> None:
    ben = await stage.meet("ben")
    await stage.exchange("for Ana")
    own = await stage.exchange("for Ben", source=dm("ben"))
    shared = await stage.exchange("for both", source=group("ben"))
    await stage.do(lambda tx: feed.add_personal_event(tx, ben.id, "access", ben.id))
    seen = []
    position = START
    while page := await stage.look(
        lambda tx, after=position: feed.list_after(tx, after=after, person_id=ben.id, limit=3)  # type: ignore[misc]
    ):
        seen += page
        position = page[-1].position
    assert {event.session_id for event in seen} == {own, shared, None}
    assert seen == sorted(seen, key=lambda event: event.position)
    assert position == await stage.look(feed.end)


async def test_a_session_may_be_removed_from_every_surface_and_opened_again(stage: Stage) -> None:
    session_id = await stage.exchange("one")
    await stage.do(lambda tx: session_keys.remove_keys(tx, session_id))
    assert await stage.look(lambda tx: session_keys.list_keys(tx, session_id)) == []
    assert await stage.do(lambda tx: sessions.close_session(tx, session_id, reason="done"))
    assert not await stage.do(lambda tx: sessions.close_session(tx, session_id, reason="again"))
    assert await stage.do(lambda tx: sessions.reopen_session(tx, session_id))
    assert not await stage.do(lambda tx: sessions.reopen_session(tx, session_id))


async def test_the_newest_messages_come_first_when_asked_for_the_last(stage: Stage) -> None:
    session_id = await stage.exchange("one", "two")
    last = await stage.look(
        lambda tx: messages.list_last(tx, Segment(session_id=session_id, branch_no=0, first_seq=1), limit=1)
    )
    assert [message.text for message in last] == ["two"]


async def test_a_person_belongs_to_their_own_audience_and_to_those_of_their_chats(stage: Stage) -> None:
    ben = await stage.meet("ben")
    await stage.accept("hello", source=group("ben"))
    audiences = await stage.look(lambda tx: people.list_audiences(tx, ben.id))
    assert len(audiences) == 2
    for audience_id in audiences:
        assert await stage.look(
            lambda tx, each=audience_id: people.is_member(tx, person_id=ben.id, audience_id=each)  # type: ignore[misc]
        )
    assert not await stage.look(lambda tx: people.is_member(tx, person_id=ben.id, audience_id=99))


async def test_a_lost_race_for_a_row_runs_the_function_again(stage: Stage) -> None:
    accepted = await stage.accept("hi", ref="1")

    def add_again(tx: Tx) -> None:
        [known] = session_keys.list_keys(tx, accepted.session_id)
        with pytest.raises(RaceLost):
            session_keys.add_key(
                tx,
                SessionKey(known.key),
                session_id=known.session_id,
                source=known.source,
                audience_id=known.audience_id,
            )
        with pytest.raises(RaceLost):
            inbox.add_item(
                tx,
                session_id=accepted.session_id,
                kind="message",
                source=known.source,
                ref="1",
                parts=(TextPart(text="hi"),),
                person_id=None,
            )

    await stage.do(add_again)
    assert await stage.rows("SELECT count(*) FROM inbox") == [(1,)]
