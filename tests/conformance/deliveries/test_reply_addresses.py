"""A conversation on several surfaces: each surface gets the replies as its own message."""

from dataclasses import replace

import pytest

from keryx.core.approvals.rules.approval import APPROVAL_LIFETIME
from keryx.core.approvals.transactions.decide_approval import expire_approvals
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.people.tables import access, people
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.fail_turn import Failure
from keryx.store.database import Database, Tx
from keryx.testing.builders import dm
from keryx.testing.clock import FakeClock
from tests.conformance.acting import ask, call, fail
from tests.conformance.stage import Stage

PHONE, LAPTOP = dm(), dm("ann", platform="signal")


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    """The owner's conversation, on two platforms and in the terminal; the phone asks last."""
    stage = Stage(database=database, clock=clock)

    def meet(tx: Tx) -> None:
        owner = people.ensure_owner(tx)
        for source in (PHONE, LAPTOP):
            access.add_identity(tx, source, person_id=owner.id, user_id=source.user_id or "")

    await stage.do(meet)
    session_id = await stage.exchange("figs", source=PHONE)
    for source in (LAPTOP, LOCAL_CLI):
        await stage.accept(f"/attach {session_id}", source=source, ref=source.platform)
    await stage.accept("olives", source=PHONE)
    return stage


async def told(stage: Stage, platform: str) -> list[tuple[str, str]]:
    """Return the kind and the text of the last delivery to a platform."""
    [last] = (await stage.deliveries(platform))[-1:]
    [(_, text)] = (await stage.said(platform))[-1:]
    return [(last.kind, text)]


async def asking(stage: Stage) -> BegunTurn:
    begun = await stage.begin()
    await call(stage, begun, ("c", "ask"))
    await ask(stage, begun)
    return begun


async def test_a_question_is_asked_on_every_surface_and_the_first_answer_counts(stage: Stage) -> None:
    begun = await asking(stage)
    assert await told(stage, "telegram") == await told(stage, "signal") == [("question", "May I?")]
    assert await told(stage, "local") != [("question", "May I?")], "a terminal looks for what waits by itself"
    await stage.accept("/approve", source=LAPTOP)
    await stage.accept("/deny 1", source=PHONE)
    [(_, late)] = await told(stage, "telegram")
    assert late == "That was approved already."
    assert (await stage.begin()).turn_id == begun.turn_id


async def test_the_expiry_of_a_question_is_shown_on_every_surface(stage: Stage) -> None:
    await asking(stage)
    stage.clock.advance(APPROVAL_LIFETIME + 1)
    await stage.do(lambda tx: expire_approvals(tx, ids=stage.ids))
    for platform in ("telegram", "signal", "local"):
        [(kind, text)] = await told(stage, platform)
        assert (kind, text.startswith("Question 1 was not answered in time")) == ("notice", True)


async def test_a_failure_is_shown_on_every_surface(stage: Stage) -> None:
    await fail(stage, await stage.begin(), Failure(reason="the model is gone"))
    text = "I could not answer: the model is gone\n/retry tries again."
    assert await told(stage, "telegram") == [("reply", text)]
    assert await told(stage, "signal") == await told(stage, "local") == [("copy", text)]


async def test_an_answer_in_a_thread_of_a_chat_is_not_copied_into_the_chat_itself(stage: Stage) -> None:
    await stage.finish(await stage.begin(), "Black ones.")
    await stage.exchange("In a thread?", "Green ones.", source=replace(PHONE, thread_id="7"))
    said_to = [(each.to.thread_id, each.kind) for each in await stage.deliveries("telegram")]
    assert said_to[-2:] == [(None, "reply"), ("7", "reply")]
    assert await told(stage, "signal") == [("copy", "Green ones.")]
