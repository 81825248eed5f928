"""A message to an expired session opens the next one; the user and the agent get one notice."""

import pytest

from keryx.clock import DAY, HOUR
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.tables import branches, session_keys, sessions
from keryx.core.people.tables import access
from keryx.core.processes import tables as processes
from keryx.core.processes.rules import NoticePolicy
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy
from keryx.core.turns.transactions.record_step import ask_approval, record_calls
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.testing.builders import call_message, dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Meanwhile, Stage

DAILY = ResetPolicies(default=ResetPolicy(mode="daily", at_hour=4))
IDLE = ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=60))


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage(database=database, clock=clock)


async def test_a_reset_opens_the_next_session_and_notifies_the_user_and_the_agent_once(stage: Stage) -> None:
    stage.set(reset=DAILY)
    await stage.meet("ana")
    old = await stage.exchange("one", source=group())
    stage.clock.advance(DAY)
    accepted = await stage.accept("two", source=group())
    assert (accepted.opened, accepted.reset) == (True, "daily")
    before, after = await stage.session(old), await stage.session(accepted.session_id)
    assert (before.state, before.close_reason, after.state) == ("closed", "reset", "open")
    assert (after.source, after.display_name) == (before.source, before.display_name)
    [link] = await stage.look(lambda tx: branches.list_links(tx, accepted.session_id))
    assert (link.kind, link.from_session_id) == ("reset", old)
    assert after.reset_reason is not None
    assert "daily reset at 04:00" in after.reset_reason
    notices = [text for _, text in await stage.said() if text.startswith("fresh conversation")]
    assert notices == ["fresh conversation since 04:00; /resume brings the last one back"]
    # The agent gets the notice until a turn has finished, also after a crash.
    await stage.begin()
    await stage.lose_holder()
    await stage.recover()
    assert (await stage.session(accepted.session_id)).reset_reason == after.reset_reason
    await stage.finish(await stage.begin())
    assert (await stage.session(accepted.session_id)).reset_reason is None
    assert (await stage.accept("three", source=group())).reset is None


async def test_an_idle_reset_needs_strictly_more_than_the_idle_minutes(stage: Stage) -> None:
    stage.set(reset=IDLE)
    await stage.meet("ana")
    await stage.exchange("one")
    stage.clock.advance(HOUR)
    assert (await stage.accept("two")).reset is None
    await stage.finish(await stage.begin())
    stage.clock.advance(HOUR + 1)
    assert (await stage.accept("three")).reset == "idle"


async def test_a_waiting_message_postpones_the_reset(stage: Stage) -> None:
    stage.set(reset=IDLE)
    await stage.meet("ana")
    first = await stage.accept("one")
    stage.clock.advance(2 * HOUR)
    assert (await stage.accept("two")).session_id == first.session_id


async def test_a_live_turn_postpones_the_reset(stage: Stage) -> None:
    stage.set(reset=IDLE)
    await stage.meet("ana")
    first = await stage.accept("one")
    begun = await stage.begin()
    message = call_message(("c", "ask"))
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    await stage.do(lambda tx: ask_approval(tx, begun.held, call_id="c", question="May I?", ids=stage.ids))
    stage.clock.advance(2 * HOUR)
    assert (await stage.accept("two")).session_id == first.session_id


async def test_a_live_process_pins_the_session(stage: Stage, clock: FakeClock) -> None:
    stage.set(reset=IDLE)
    ana = await stage.meet("ana")
    session_id = await stage.exchange("one")
    await stage.do(
        lambda tx: processes.add_process(
            tx,
            session_id=session_id,
            owner_id=ana.id,
            notice=NoticePolicy(),
            command="sleep",
            workspace=None,
            backend="local",
            host=None,
            folder=None,
            has_pty=0,
            pins_until_at=clock.now() + DAY,
        )
    )
    stage.clock.advance(2 * HOUR)
    assert (await stage.accept("two")).reset is None
    await stage.finish(await stage.begin())
    stage.clock.advance(DAY)
    assert (await stage.accept("three")).reset == "idle"


async def test_the_next_session_inherits_the_settings(stage: Stage) -> None:
    stage.set(reset=IDLE)
    await stage.meet("ana")
    session_id = await stage.exchange("one")
    await stage.tamper(
        "UPDATE sessions SET workspace = '/w', model = 'm', model_settings = '{}', personality = 'p'"
    )
    stage.clock.advance(2 * HOUR)
    accepted = await stage.accept("two")
    after = await stage.session(accepted.session_id)
    assert (after.workspace, after.model, after.model_settings, after.personality) == ("/w", "m", "{}", "p")
    assert (after.title, after.message_total) == (None, 0)
    assert session_id != accepted.session_id


async def test_every_surface_of_a_session_moves_with_a_reset(stage: Stage) -> None:
    stage.set(reset=IDLE)
    ana = await stage.meet("ana")
    session_id = await stage.exchange("one")
    audience_id = (await stage.session(session_id)).audience_id
    other = dm("a", platform="signal")
    await stage.do(lambda tx: access.add_identity(tx, other, person_id=ana.id, user_id="a"))
    await stage.do(
        lambda tx: session_keys.point_key(
            tx,
            SessionKey("agent:main:signal:dm:a"),
            session_id=session_id,
            source=other,
            audience_id=audience_id,
        )
    )
    stage.clock.advance(2 * HOUR)
    renewed = await stage.accept("two")
    assert (await stage.accept("three", source=other)).session_id == renewed.session_id
    await stage.finish(await stage.begin(), "to both")
    assert [address for address, text in await stage.said("telegram") if text == "to both"] == [
        "telegram:ana"
    ]
    copies = await stage.deliveries("signal")
    assert [(each.address, each.kind) for each in copies] == [("signal:a", "copy")]


async def test_a_session_closed_by_a_program_is_followed_by_another_without_a_notice(stage: Stage) -> None:
    await stage.meet("ana")
    session_id = await stage.exchange("one")
    await stage.do(lambda tx: sessions.close_session(tx, session_id, reason="done"))
    accepted = await stage.accept("two")
    assert (accepted.opened, accepted.reset) == (True, None)
    assert (await stage.session(session_id)).close_reason == "done"
    assert await stage.said() == [("telegram:ana", "yes")]
    assert (await stage.accept("three")).session_id == accepted.session_id


async def test_a_key_that_another_transaction_changes_is_read_again(
    postgres_url: str, clock: FakeClock
) -> None:
    """Another gateway runs ``/new`` while this one waits for the session."""
    meanwhile = Meanwhile("sessions.lock")
    slow = Stage(database=open_database(postgres_url, clock=clock, hook=meanwhile), clock=clock)
    fast = Stage(database=open_database(postgres_url, clock=clock), clock=clock, ids=Ids(seed=8))
    await slow.meet("ana")
    old = await slow.accept("one")
    meanwhile.work = lambda: fast.accept("/new")
    accepted = await slow.accept("two")
    assert accepted.session_id != old.session_id
    assert not accepted.opened
    for stage in (slow, fast):
        await stage.database.close()


@pytest.mark.parametrize(("policies", "later"), [(IDLE, HOUR), (DAILY, DAY)])
async def test_a_session_resumed_after_a_reset_continues_until_the_rule_is_due_again(
    stage: Stage, policies: ResetPolicies, later: int
) -> None:
    stage.set(reset=policies)
    await stage.meet("ana")
    old = await stage.exchange("one")
    said_at = (await stage.session(old)).last_active_at
    stage.clock.advance(later + 1)
    assert (await stage.exchange("two")) != old
    assert (await stage.accept("/resume one")).session_id == old
    assert (await stage.session(old)).last_active_at == said_at, "resuming is no activity"
    accepted = await stage.accept("three")
    assert (accepted.session_id, accepted.reset) == (old, None)
    await stage.finish(await stage.begin())
    stage.clock.advance(later + 1)
    assert (await stage.accept("four")).reset is not None


async def test_a_resumed_conversation_without_messages_expires_again(stage: Stage) -> None:
    stage.set(reset=IDLE)
    await stage.meet("ana")
    old = await stage.exchange("one")
    stage.clock.advance(HOUR + 1)
    await stage.exchange("two")
    await stage.accept("/resume one")
    stage.clock.advance(HOUR)
    assert (await stage.accept("/status")).session_id == old
    stage.clock.advance(1)
    assert (await stage.accept("three")).reset == "idle"


async def test_a_conversation_that_another_chat_joined_continues_there(stage: Stage) -> None:
    stage.set(reset=IDLE)
    ana = await stage.meet("ana")
    await stage.do(lambda tx: access.add_identity(tx, dm("ann"), person_id=ana.id, user_id="ann"))
    old = await stage.exchange("one")
    stage.clock.advance(HOUR + 1)
    assert (await stage.accept("/attach one", source=dm("ann"))).session_id == old
    assert (await stage.accept("two", source=dm("ann"))).session_id == old
