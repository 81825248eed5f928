"""The immediate effects of an accepted message: commands, and busy modes."""

import pytest

from keryx.commands.table import COMMANDS
from keryx.config import BusySettings, Settings
from keryx.core.conversations.rules.message import MediaPart, TextPart
from keryx.core.turns.rules.busy import ROLLBACK_REFUSED, BusyMode
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy
from keryx.core.turns.transactions.accept_message import Accepted, accept_message
from keryx.core.turns.transactions.record_step import ask_approval, record_calls
from keryx.core.turns.transactions.renew_turn import renew_turn
from keryx.store.database import Database
from keryx.testing.builders import call_message, dm
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage

DAILY = ResetPolicies(default=ResetPolicy(mode="daily", at_hour=4))
IDLE = ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=60))


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage(database=database, clock=clock)


async def test_a_command_never_reaches_the_model(stage: Stage) -> None:
    await stage.meet("ana")
    known = await stage.accept("/help")
    unknown = await stage.accept("/hepl")
    assert await stage.fate(known) == await stage.fate(unknown) == "command"
    assert await stage.begin_if_any() is None
    texts = [text for _, text in await stage.said()]
    assert texts[0].startswith("/new: Start a fresh conversation here.")
    assert texts[1] == "There is no command /hepl. Did you mean /help? /help lists them all."


async def test_new_points_the_surface_to_a_fresh_session_and_closes_the_old_one(stage: Stage) -> None:
    await stage.meet("ana")
    old = await stage.exchange("one")
    fresh = await stage.accept("/new")
    assert fresh.session_id != old
    assert (await stage.session(old)).close_reason == "new"
    assert (await stage.accept("two")).session_id == fresh.session_id


async def test_a_command_that_only_a_surface_can_answer_waits_for_the_surface(stage: Stage) -> None:
    await stage.meet("ana")
    accepted = await stage.accept("/search hotel")
    assert accepted.needs_answer is not None
    assert (accepted.needs_answer.kind, accepted.needs_answer.argument) == ("search", "hotel")
    assert await stage.said() == []


async def test_a_queued_message_does_not_affect_the_running_turn(stage: Stage) -> None:
    await stage.meet("ana")
    await stage.accept("one")
    begun = await stage.begin()
    await stage.accept("two")
    renewed = await stage.do(lambda tx: renew_turn(tx, begun.held))
    assert (renewed.stop_requested, renewed.steering) == (False, ())


async def test_the_mode_is_set_per_chat_then_platform_then_everywhere(stage: Stage) -> None:
    await stage.meet("ana")
    mode: BusyMode = "collect"
    for settings in (
        BusySettings(default=mode),
        BusySettings(by_place={("telegram", None): mode}),
        BusySettings(
            default="rollback", by_place={("telegram", None): "rollback", ("telegram", "ana"): mode}
        ),
    ):
        stage.set(busy=settings)
        accepted = await stage.accept("hello", ref=str(settings))
        assert (await stage.item(accepted.inbox_id)).busy_mode == mode


async def test_one_message_may_name_its_own_mode(stage: Stage) -> None:
    await stage.meet("ana")
    first = await stage.item((await stage.accept("!steer go left")).inbox_id)
    assert (first.busy_mode, first.parts) == ("steer", (TextPart(text="go left"),))
    picture = MediaPart(media_type="image/png", url="https://example.org/a.png")
    for ref, parts in (
        ("a", (TextPart(text="!collect"), picture)),
        ("b", (picture, TextPart(text="!steer"))),
    ):
        message = Inbound(source=dm(), ref=ref, parts=parts)
        accepted = await stage.do(
            lambda tx, message=message: accept_message(
                tx, message, settings=Settings(), ids=stage.ids, commands=COMMANDS
            )  # type: ignore[misc]
        )
        assert isinstance(accepted, Accepted)
        item = await stage.item(accepted.inbox_id)
        assert item.busy_mode == ("collect" if ref == "a" else "queue")
        assert picture in item.parts


@pytest.mark.parametrize("text", ["!stop", " !STOP ", "!interrupt"])
async def test_a_bare_stop_runs_the_stop_command(stage: Stage, text: str) -> None:
    await stage.meet("ana")
    await stage.accept("one")
    begun = await stage.begin()
    assert await stage.fate(await stage.accept(text)) == "command"
    renewed = await stage.do(lambda tx: renew_turn(tx, begun.held))
    assert renewed.stop_requested
    assert [said for _, said in await stage.said()] == ["Stopping."]
    await stage.finish(begun)
    assert await stage.begin_if_any() is None


@pytest.mark.parametrize("mode", ["steer", "queue", "collect", "rollback"])
async def test_a_mode_without_a_message_gets_an_explanation(stage: Stage, mode: str) -> None:
    await stage.meet("ana")
    assert await stage.fate(await stage.accept(f"!{mode}")) == "command"
    [(_, said)] = await stage.said()
    assert said.startswith(f"Write your message behind !{mode}")
    assert await stage.begin_if_any() is None


async def test_an_interruption_asks_the_running_turn_to_stop(stage: Stage) -> None:
    await stage.meet("ana")
    await stage.accept("one")
    begun = await stage.begin()
    await stage.accept("!stop two")
    await stage.accept("!stop three")
    renewed = await stage.do(lambda tx: renew_turn(tx, begun.held))
    assert (renewed.stop_requested, renewed.roll_back) == (True, False)
    assert await stage.said() == []


async def test_an_interruption_ends_a_waiting_turn(stage: Stage) -> None:
    await stage.meet("ana")
    first = await stage.accept("one")
    begun = await stage.begin()
    message = call_message(("c", "ask"))
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    await stage.do(lambda tx: ask_approval(tx, begun.held, call_id="c", question="May I?", ids=stage.ids))
    second = await stage.accept("!stop never mind")
    assert (await stage.turn(begun)).state == "stopped"
    assert await stage.fate(first) == "cancelled"
    await stage.finish(await stage.begin(), "fine")
    assert await stage.fate(second) == "answered"


async def test_a_turn_with_only_pure_calls_is_rolled_back(stage: Stage) -> None:
    await stage.meet("ana")
    await stage.accept("one")
    begun = await stage.begin()
    message = call_message(("c", "pure"))
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    accepted = await stage.accept("!rollback two")
    assert (await stage.item(accepted.inbox_id)).busy_mode == "rollback"
    renewed = await stage.do(lambda tx: renew_turn(tx, begun.held))
    assert (renewed.stop_requested, renewed.roll_back) == (True, True)
    assert await stage.said() == []


async def test_a_rollback_after_an_effect_is_an_interruption_with_a_notice(stage: Stage) -> None:
    await stage.meet("ana")
    await stage.accept("one")
    begun = await stage.begin()
    message = call_message(("c", "once"))
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    accepted = await stage.accept("!rollback two")
    assert (await stage.item(accepted.inbox_id)).busy_mode == "interrupt"
    renewed = await stage.do(lambda tx: renew_turn(tx, begun.held))
    assert (renewed.stop_requested, renewed.roll_back) == (True, False)
    assert await stage.said() == [("telegram:ana", ROLLBACK_REFUSED)]
