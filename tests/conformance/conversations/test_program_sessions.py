"""The session that a program gets for a source is the one that a message there would enter."""

import pytest

from keryx.clock import HOUR
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import ScopeSettings
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import session_keys
from keryx.core.conversations.transactions.program_sessions import ensure_session
from keryx.core.people.rules.person import Person
from keryx.core.processes.transactions.record_process import NewProcess, record_started
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy
from keryx.errors import NotAllowed, NotFound
from keryx.store.database import Database
from keryx.testing.builders import dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage

HOURLY = ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=60))
ELSEWHERE = Source(platform="discord", chat_id="9", chat_type="dm")


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage(database=database, clock=clock)


async def ensure(stage: Stage, person: Person, source: Source) -> SessionId:
    return await stage.do(
        lambda tx: ensure_session(tx, stage.ids, source=source, person=person, settings=stage.settings)
    )


async def keys(stage: Stage, session_id: SessionId) -> list[str]:
    return [each.key for each in await stage.look(lambda tx: session_keys.list_keys(tx, session_id))]


async def test_a_program_and_a_message_find_the_same_session(stage: Stage) -> None:
    ana = await stage.meet("ana")
    stage.set(profile="work")
    made = await ensure(stage, ana, dm("ana"))
    assert await keys(stage, made) == ["agent:work:telegram:dm:ana"]
    assert (await stage.session(made)).profile == "work"
    assert (await stage.accept("hello")).session_id == made
    stage.set(profile="main")
    assert await ensure(stage, ana, dm("ana")) != made


async def test_a_new_session_has_the_profile_of_the_settings(stage: Stage) -> None:
    await stage.meet("ana")
    stage.set(profile="work")
    await stage.accept("hello")
    fresh = (await stage.accept("/new")).session_id
    assert (await stage.session(fresh)).profile == "work"


async def test_scope_person_shares_a_session_on_all_platforms(stage: Stage) -> None:
    ana = await stage.meet("ana")
    stage.set(profile="work", scope=ScopeSettings(dm="person"))
    session_id = (await stage.accept("hello")).session_id
    assert await keys(stage, session_id) == [f"agent:work:person:{ana.id}"]
    assert await ensure(stage, ana, dm("ana")) == session_id
    assert await ensure(stage, ana, ELSEWHERE) == session_id
    stage.set(scope=ScopeSettings())
    assert await ensure(stage, ana, ELSEWHERE) != session_id


async def test_people_with_equal_keys_share_no_session(stage: Stage) -> None:
    ana, ben = await stage.meet("ana"), await stage.meet("ben")
    stage.set(scope=ScopeSettings(dm="platform"))
    hers = (await stage.accept("hello")).session_id
    his = (await stage.accept("hi", source=dm("ben"))).session_id
    assert (await ensure(stage, ana, dm("ana")), await ensure(stage, ben, dm("ben"))) == (hers, his)
    eve = await stage.meet("eve")
    with pytest.raises(NotFound):
        await ensure(stage, eve, dm("ana"))


async def test_a_program_that_asks_for_an_expired_session_gets_a_new_one_and_a_notice(stage: Stage) -> None:
    ana = await stage.meet("ana")
    stage.set(reset=HOURLY)
    old = await stage.exchange("I like tea")
    stage.clock.advance(2 * HOUR)
    new = await ensure(stage, ana, dm("ana"))
    assert new != old
    assert (await stage.session(old)).state == "closed"
    notice = "fresh conversation after 60 minutes without a message; /resume brings the last one back"
    assert (await stage.said())[-1] == ("telegram:ana", notice)
    assert (await stage.session(new)).reset_reason is not None
    assert await ensure(stage, ana, dm("ana")) == new


async def test_a_running_process_prevents_a_reset(stage: Stage) -> None:
    ana = await stage.meet("ana")
    stage.set(reset=HOURLY)
    session_id = await stage.exchange("build it")
    build = NewProcess(command="make", workspace=None)
    await stage.do(lambda tx: record_started(tx, build, session_id=session_id, person_id=ana.id))
    stage.clock.advance(2 * HOUR)
    assert await ensure(stage, ana, dm("ana")) == session_id


async def test_a_program_opens_no_session_in_a_chat_of_other_people(stage: Stage) -> None:
    ana = await stage.meet("ana")
    with pytest.raises(NotAllowed):
        await ensure(stage, ana, group("ana"))
    assert await stage.rows("SELECT COUNT(*) FROM sessions") == [(0,)]
    session_id = (await stage.accept("hello", source=group("ana"))).session_id
    assert await ensure(stage, ana, group("ana")) == session_id
    ben = await stage.meet("ben")
    with pytest.raises(NotFound):
        await ensure(stage, ben, group("ben"))
    members = await stage.rows(f"SELECT COUNT(*) FROM audience_members WHERE person_id = {ben.id}")
    assert members == [(1,)]
