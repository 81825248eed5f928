"""Questions in the agent's own words: the next message of the person asked answers them, once."""

import pytest

from keryx.clock import DAY
from keryx.commands.table import COMMANDS
from keryx.core.approvals.transactions.decide_approval import answer_question, expire_approvals
from keryx.core.conversations.rules.message import MediaPart, NewMessage, ToolCallPart
from keryx.core.people.rules.person import PersonId
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.tables import turns
from keryx.core.turns.transactions.accept_message import Accepted, Duplicate, accept_message
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.fail_turn import hand_back_turn
from keryx.core.turns.transactions.record_step import ask_approval, record_calls
from keryx.core.turns.views.turn import OpenCall, show_turn
from keryx.store.database import Database
from keryx.testing.builders import dm, group, inbound
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    return stage


async def asking(stage: Stage, *, name: str = "ask_user", where: str = "dm", text: str = "cook") -> BegunTurn:
    """Return a turn that waits for an answer of Ana."""
    await stage.accept(text, source=dm() if where == "dm" else group())
    begun = await stage.begin()
    call = ToolCallPart(call_id="c", name=name, arguments={}, effect="ask")
    message = NewMessage(role="assistant", parts=(call,))
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    await stage.do(lambda tx: ask_approval(tx, begun.held, call_id="c", question="Tea?", ids=stage.ids))
    return begun


async def open_call(stage: Stage, begun: BegunTurn) -> OpenCall:
    [found] = (await stage.look(lambda tx: show_turn(tx, begun.turn_id))).open_calls
    return found


async def test_the_next_message_is_the_answer_and_the_turn_continues_with_it(stage: Stage) -> None:
    begun = await asking(stage)
    accepted = await stage.accept("  green\x00, please ", ref="r")
    assert isinstance(await stage.hear("green", ref="r"), Duplicate)
    again = await stage.begin()
    assert (again.turn_id, again.resumed) == (begun.turn_id, True)
    found = await open_call(stage, again)
    assert (found.verdict, found.answer) == ("approved", "green\ufffd, please")
    await stage.finish(again, "Here you are.")
    assert (await stage.item(accepted.inbox_id)).fate == "merged"
    assert await stage.begin_if_any() is None


async def test_the_answer_outlives_the_gateway_that_continued(stage: Stage) -> None:
    await asking(stage)
    await stage.accept("green")
    again = await stage.begin()
    await stage.do(lambda tx: hand_back_turn(tx, again.held))
    third = await stage.begin()
    assert third.turn_id != again.turn_id
    assert (await open_call(stage, third)).answer == "green"


async def test_an_answer_from_another_surface_is_answered_there(stage: Stage) -> None:
    begun = await asking(stage)
    elsewhere = dm("ana", platform="signal")
    turn = await stage.look(lambda tx: turns.get_turn(tx, begun.turn_id))
    message = inbound("green", source=elsewhere)
    await stage.do(lambda tx: answer_question(tx, message, turn=turn, person_id=PersonId(1)))
    again = await stage.begin()
    view = await stage.look(lambda tx: show_turn(tx, again.turn_id))
    assert view.source.platform == "signal"


async def test_messages_of_others_media_and_commands_are_no_answers(stage: Stage) -> None:
    await stage.meet("ben")
    begun = await asking(stage, where="group")
    await stage.accept("I would not", source=group("ben"))
    await stage.accept("!queue later", source=group())
    picture = Inbound(source=group(), ref="p", parts=(MediaPart(media_type="image/png", url="https://x/y"),))
    taken = await stage.do(
        lambda tx: accept_message(tx, picture, settings=stage.settings, ids=stage.ids, commands=COMMANDS)
    )
    assert isinstance(taken, Accepted)
    assert await stage.begin_if_any() is None
    assert (await open_call(stage, begun)).verdict == "pending"


async def test_an_ordinary_approval_is_not_answered_by_a_message(stage: Stage) -> None:
    begun = await asking(stage, name="delete")
    await stage.accept("what?")
    assert await stage.begin_if_any() is None
    assert (await open_call(stage, begun)).verdict == "pending"
    await stage.accept("/approve")
    again = await stage.begin()
    found = await open_call(stage, again)
    assert (found.verdict, found.answer) == ("approved", None)


async def test_an_answer_after_the_expiry_is_an_ordinary_message(stage: Stage) -> None:
    begun = await asking(stage)
    stage.clock.advance(2 * DAY)
    late = await stage.accept("green")
    assert (await stage.item(late.inbox_id)).kind == "message"
    await stage.do(lambda tx: expire_approvals(tx, ids=stage.ids))
    again = await stage.begin()
    assert again.turn_id == begun.turn_id
    assert (await open_call(stage, again)).verdict == "expired"


async def test_a_stopped_question_does_not_block_the_next(stage: Stage) -> None:
    await asking(stage)
    await stage.accept("/stop")
    later = await stage.accept("green")
    assert (await stage.item(later.inbox_id)).kind == "message"
    await stage.finish(await stage.begin())
    await asking(stage, text="bake")
    await stage.accept("black")
    assert (await open_call(stage, await stage.begin())).answer == "black"
