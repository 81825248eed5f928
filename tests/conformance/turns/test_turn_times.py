"""What a turn told its model about the time: recorded with the turn, and the same for every later turn."""

import pytest

from keryx.clock import DAY, HOUR
from keryx.core.context.rules.guide_turns import GUIDE
from keryx.core.context.rules.turn_time import time_line
from keryx.core.conversations.rules.message import NewMessage, TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.views.transcript import conversation
from keryx.core.turns.transactions.begin_turn import BegunTurn, begin_turn
from keryx.core.turns.transactions.finish_turn import Reply, finish_turn
from keryx.core.turns.transactions.record_step import record_prompt
from keryx.core.turns.views.turn import TurnView, show_prompt, show_turn
from keryx.store.database import Database
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage

ROME = "Europe/Rome"


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    return stage


async def begin(stage: Stage, said: str, *, zone: str | None) -> BegunTurn:
    await stage.accept(said, ref=stage.ids.token())
    begun = await stage.do(lambda tx: begin_turn(tx, holder="me", zone=zone))
    assert begun is not None
    return begun


async def answer(stage: Stage, begun: BegunTurn, text: str, *, by: str = "stop") -> None:
    message = NewMessage(role="assistant", parts=(TextPart(text=text),), finish_reason=by)
    await stage.do(lambda tx: finish_turn(tx, begun.held, reply=Reply(message=message), ids=stage.ids))


async def look(stage: Stage, begun: BegunTurn) -> TurnView:
    return await stage.look(lambda tx: show_turn(tx, begun.turn_id))


async def test_a_turn_tells_its_own_time_and_those_of_the_turns_before_unchanged(stage: Stage) -> None:
    first_at = stage.clock.now()
    first = await begin(stage, "one", zone=ROME)
    told = (await look(stage, first)).time_lines
    assert told == {first.turn_id: time_line(first_at, ROME)}
    await answer(stage, first, "One")
    stage.clock.advance(DAY + HOUR)
    second_at = stage.clock.now()
    second = await begin(stage, "two", zone="Asia/Tokyo")
    assert dict((await look(stage, second)).time_lines) == dict(told) | {
        second.turn_id: time_line(second_at, "Asia/Tokyo")
    }, "a setting that changes does not change what was told"


async def test_a_turn_from_before_zones_were_recorded_tells_no_time(stage: Stage) -> None:
    first = await begin(stage, "one", zone=None)
    assert (await look(stage, first)).time_lines == {}


async def test_what_a_model_was_told_can_be_shown(stage: Stage) -> None:
    at = stage.clock.now()
    begun = await begin(stage, "one", zone=ROME)
    await stage.do(lambda tx: record_prompt(tx, begun.held, model="m", prompt="Be brief.", tools="[]"))
    await answer(stage, begun, "One")
    ((person_id,),) = await stage.rows("SELECT person_id FROM turns")
    shown = await stage.look(lambda tx: show_prompt(tx, begun.turn_id, person_id=int(str(person_id))))
    assert shown is not None
    assert shown.time == time_line(at, ROME)


async def test_no_model_reads_what_the_guide_answered(stage: Stage) -> None:
    guided = await begin(stage, "hello", zone=ROME)
    session_id: SessionId = guided.held.session_id
    await answer(stage, guided, "No model answers here.", by=GUIDE)
    begun = await begin(stage, "and now?", zone=ROME)
    view = await look(stage, begun)
    assert [each.text for each in view.messages if hasattr(each, "text")] == ["and now?"]
    assert view.guide_explained
    ((person_id,),) = await stage.rows("SELECT owner_id FROM sessions")
    chat = await stage.look(lambda tx: conversation(tx, session_id, person_id=int(str(person_id))))
    assert [each["content"] for each in chat] == ["and now?"]
