"""Messages that one turn answers together: steering, collecting, interrupting, rolling back."""

import pytest

from keryx.clock import MINUTE, SECOND
from keryx.core.conversations.rules.message import NewMessage, TextPart, ToolCallPart
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.tables import session_keys
from keryx.core.turns.rules.busy import ROLLBACK_REFUSED
from keryx.core.turns.transactions.fail_turn import stop_session, stop_turn
from keryx.core.turns.transactions.record_step import record_calls
from keryx.store.database import Database, Tx
from keryx.testing.builders import call_message, dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.acting import call, renew, result, roll_back, start
from tests.conformance.stage import Stage


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    return stage


async def test_a_steering_message_is_claimed_only_when_a_step_commits(stage: Stage) -> None:
    first = await stage.accept("one")
    begun = await stage.begin()
    steering = await stage.accept("!steer left")
    assert [item.id for item in (await renew(stage, begun)).steering] == [steering.inbox_id]
    assert await stage.texts(first.session_id) == ["one"]
    message = call_message(("c", "pure"))
    await stage.do(
        lambda tx: record_calls(
            tx,
            begun.held,
            message=message,
            seen=[steering.inbox_id, 999],
            ids=stage.ids,
        )
    )
    assert await stage.texts(first.session_id) == ["one", "left"]
    assert (await renew(stage, begun)).steering == ()
    await stage.finish(begun, "went left")
    assert [await stage.fate(first), await stage.fate(steering)] == ["merged", "answered"]
    assert [text for _, text in await stage.said()] == ["went left"]


async def test_an_unread_steering_message_waits_for_the_next_turn(stage: Stage) -> None:
    first = await stage.accept("one")
    begun = await stage.begin()
    steering = await stage.accept("!steer left")
    await renew(stage, begun)
    await stage.finish(begun, "straight on")
    assert [await stage.fate(first), await stage.fate(steering)] == ["answered", None]
    await stage.finish(await stage.begin(), "left then")
    assert await stage.fate(steering) == "answered"


async def test_a_final_answer_may_claim_steering_messages(stage: Stage) -> None:
    await stage.accept("one")
    begun = await stage.begin()
    steering = await stage.accept("!steer left")
    await stage.finish(begun, "left", seen=[steering.inbox_id])
    assert await stage.fate(steering) == "answered"
    assert await stage.begin_if_any() is None


async def test_a_steering_message_takes_earlier_messages_along(stage: Stage) -> None:
    await stage.accept("one")
    begun = await stage.begin()
    queued = await stage.accept("two")
    steering = await stage.accept("!steer three")
    await stage.accept("four")
    seen = [item.id for item in (await renew(stage, begun)).steering]
    assert seen == [queued.inbox_id, steering.inbox_id]
    await stage.finish(begun, "one to three", seen=seen)
    await stage.finish(await stage.begin(), "four")
    assert [text for _, text in await stage.said()] == ["one to three", "four"]


async def test_messages_that_joined_a_lost_turn_are_answered_with_it(stage: Stage) -> None:
    first = await stage.accept("one")
    begun = await stage.begin()
    second = await stage.accept("two")
    third = await stage.accept("!steer three")
    seen = [item.id for item in (await renew(stage, begun)).steering]
    message = call_message(("c", "pure"))
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, seen=seen, ids=stage.ids))
    await stage.lose_holder()
    await stage.recover()
    again = await stage.begin()
    assert [item.id for item in again.answers] == [first.inbox_id, second.inbox_id, third.inbox_id]
    await stage.finish(again, "all three")
    assert await stage.texts(first.session_id) == ["one", "two", "three", "all three"]
    assert await stage.begin_if_any() is None


async def test_the_reply_goes_to_the_chat_of_the_last_message_it_answers(stage: Stage) -> None:
    accepted = await stage.accept("one")
    session = await stage.session(accepted.session_id)
    laptop = dm("a", platform="signal")

    def attach(tx: Tx) -> None:
        tx.run(
            "people.add_identity",
            platform="signal",
            account="",
            user_id="a",
            person_id=session.owner_id,
            name=None,
        )
        session_keys.point_key(
            tx,
            SessionKey("agent:main:signal:dm:a"),
            session_id=session.id,
            source=laptop,
            audience_id=session.audience_id,
        )

    await stage.do(attach)
    begun = await stage.begin()
    steering = await stage.accept("!steer two", source=laptop)
    await stage.finish(begun, "both", seen=[steering.inbox_id])
    kinds = {
        each.address: each.kind for each in [*await stage.deliveries(), *await stage.deliveries("signal")]
    }
    assert kinds == {"signal:a": "reply", "telegram:ana": "copy"}


async def test_in_a_group_only_the_person_a_turn_answers_steers_it(stage: Stage) -> None:
    ana = await stage.meet("owner", role="owner")
    ben = await stage.meet("ben")
    first = await stage.accept("one", source=group("owner"))
    begun = await stage.begin()
    own = await stage.accept("!steer left", source=group("owner"))
    other = await stage.accept("!steer do it now", source=group("ben"))
    late = await stage.accept("!steer right", source=group("owner"))
    [joined] = (await renew(stage, begun)).steering
    assert (joined.id, joined.message.author, joined.message.author_id) == (own.inbox_id, "Owner", ana.id)
    await stage.finish(begun, "went left", seen=[joined.id])
    next_turn = await stage.begin()
    assert [item.id for item in next_turn.answers] == [other.inbox_id]
    assert (await stage.turn(next_turn)).person_id == ben.id
    await stage.finish(next_turn, "I may not")
    last = await stage.begin()
    assert [item.id for item in last.answers] == [late.inbox_id]
    await stage.finish(last, "right then")
    assert (await stage.texts(first.session_id))[:5] == ["one", "left", "went left", "do it now", "I may not"]


@pytest.mark.parametrize("mode", ["collect", "steer", "stop", "rollback"])
async def test_in_a_group_each_turn_answers_one_person_and_everyone_gets_an_answer(
    stage: Stage, mode: str
) -> None:
    await stage.meet("owner", role="owner")
    await stage.meet("ben")
    said = [("owner", "one"), ("owner", "two"), ("ben", "three"), ("owner", "four")]
    for user, text in said:
        await stage.accept(f"!{mode} {text}", source=group(user))
    stage.clock.advance(MINUTE)
    answered = []
    while (begun := await stage.begin_if_any()) is not None:
        assert {item.person_id for item in begun.answers} == {(await stage.turn(begun)).person_id}
        answered.append([item.ref.split()[1] for item in begun.answers])
        await stage.finish(begun, "yes")
    assert answered == [["one", "two"], ["three"], ["four"]]


async def test_in_a_group_a_repeated_turn_answers_the_same_person(stage: Stage) -> None:
    await stage.meet("ben")
    first = await stage.accept("one", source=group("ana"))
    begun = await stage.begin()
    other = await stage.accept("!rollback two", source=group("ben"))
    await roll_back(stage, begun)
    again = await stage.begin()
    assert [item.id for item in again.answers] == [first.inbox_id]
    await stage.finish(again, "one")
    await stage.finish(await stage.begin(), "two")
    assert [await stage.fate(first), await stage.fate(other)] == ["answered", "answered"]


async def test_collected_messages_wait_for_a_pause_and_become_one_turn(stage: Stage) -> None:
    first = await stage.accept("!collect one")
    assert await stage.begin_if_any() is None
    stage.clock.advance(2 * SECOND)
    await stage.accept("!collect two")
    stage.clock.advance(2 * SECOND)
    assert await stage.begin_if_any() is None
    stage.clock.advance(SECOND)
    begun = await stage.begin()
    assert len(begun.answers) == 2
    await stage.finish(begun, "both")
    assert await stage.texts(first.session_id) == ["one", "two", "both"]


async def test_collecting_ends_after_thirty_seconds_in_any_case(stage: Stage) -> None:
    for number in range(15):
        await stage.accept(f"!collect message {number}")
        assert await stage.begin_if_any() is None
        stage.clock.advance(2 * SECOND)
    assert len((await stage.begin()).answers) == 15


async def test_an_interruption_is_answered_with_all_waiting_messages(stage: Stage) -> None:
    first = await stage.accept("one")
    begun = await stage.begin()
    second = await stage.accept("two")
    third = await stage.accept("!interrupt three")
    await stage.do(lambda tx: stop_turn(tx, begun.held))
    await stage.finish(await stage.begin(), "two and three")
    assert [await stage.fate(each) for each in (first, second, third)] == ["cancelled", "merged", "answered"]


async def test_a_stop_keeps_the_text_so_far(stage: Stage) -> None:
    accepted = await stage.accept("one")
    begun = await stage.begin()
    assert await stage.do(lambda tx: stop_session(tx, accepted.session_id, holder="x")) == "stopping"
    assert await stage.do(lambda tx: stop_session(tx, accepted.session_id, holder="x")) == "stopping"
    assert (await renew(stage, begun)).stop_requested
    partial = NewMessage(
        role="assistant",
        parts=(TextPart(text="I was ab"), ToolCallPart(call_id="torn", name="t", arguments="{")),
    )
    await stage.do(lambda tx: stop_turn(tx, begun.held, partial=partial))
    assert await stage.texts(accepted.session_id) == ["one", "I was ab"]
    assert await stage.fate(accepted) == "cancelled"
    assert await stage.do(lambda tx: stop_session(tx, accepted.session_id, holder="x")) == "idle"
    assert await stage.begin_if_any() is None


async def test_an_unfinished_call_alone_is_not_stored(stage: Stage) -> None:
    accepted = await stage.accept("one")
    begun = await stage.begin()
    partial = call_message(("torn", "once"))
    await stage.do(lambda tx: stop_turn(tx, begun.held, partial=partial))
    assert len(await stage.transcript(accepted.session_id)) == 1


async def test_a_rollback_keeps_only_the_question_and_both_messages_are_answered(stage: Stage) -> None:
    first = await stage.accept("one")
    begun = await stage.begin()
    await call(stage, begun, ("c", "pure"), text="Let me look.")
    await result(stage, begun, "c")
    second = await stage.accept("!rollback two")
    assert await roll_back(stage, begun) == "rolled back"
    assert await stage.texts(first.session_id) == ["one"]
    again = await stage.begin()
    assert not again.resumed
    await stage.finish(again, "both")
    assert await stage.texts(first.session_id) == ["one", "two", "both"]
    assert [await stage.fate(first), await stage.fate(second)] == ["merged", "answered"]
    assert [text for _, text in await stage.said()] == ["both"]
    # Nothing is deleted: the former branch has all messages.
    assert (await stage.session(first.session_id)).message_total == 5


async def test_steering_messages_of_a_rolled_back_turn_are_answered_again(stage: Stage) -> None:
    first = await stage.accept("one")
    begun = await stage.begin()
    await call(stage, begun, ("c", "pure"), text="Let me look.")
    steering = await stage.accept("!steer left")
    message = call_message(("d", "pure"))
    await stage.do(
        lambda tx: record_calls(tx, begun.held, message=message, seen=[steering.inbox_id], ids=stage.ids)
    )
    await stage.accept("!rollback two")
    assert await roll_back(stage, begun) == "rolled back"
    assert await stage.texts(first.session_id) == ["one"]
    await stage.finish(await stage.begin(), "all")
    assert await stage.texts(first.session_id) == ["one", "left", "two", "all"]


async def test_a_rollback_that_comes_too_late_stops_the_turn_with_a_notice(stage: Stage) -> None:
    first = await stage.accept("one")
    begun = await stage.begin()
    await stage.accept("!rollback two")
    await call(stage, begun, ("c", "once"))
    await start(stage, begun, "c")
    assert await roll_back(stage, begun) == "stopped"
    assert await stage.said() == [("telegram:ana", ROLLBACK_REFUSED)]
    assert await stage.fate(first) == "cancelled"
    await stage.finish(await stage.begin(), "two")


async def test_effects_of_a_lost_turn_count_against_a_rollback_of_the_next(stage: Stage) -> None:
    await stage.accept("one")
    lost = await stage.begin()
    await call(stage, lost, ("c", "once"))
    await start(stage, lost, "c")
    await result(stage, lost, "c")
    await stage.lose_holder()
    await stage.recover()
    begun = await stage.begin()
    await stage.accept("!rollback two")
    assert await roll_back(stage, begun) == "stopped"


async def test_a_rollback_keeps_all_messages_that_the_turn_began_with(stage: Stage) -> None:
    first = await stage.accept("!collect one")
    await stage.accept("!collect two")
    stage.clock.advance(MINUTE)
    begun = await stage.begin()
    await call(stage, begun, ("c", "pure"), text="Let me look.")
    await stage.accept("!rollback three")
    assert await roll_back(stage, begun) == "rolled back"
    assert await stage.texts(first.session_id) == ["one", "two"]
    await stage.finish(await stage.begin(), "all")
    assert await stage.texts(first.session_id) == ["one", "two", "three", "all"]
