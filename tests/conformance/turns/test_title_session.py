"""The title from a model: requested once, giving way, never replacing a person's title; its usage counts."""

from dataclasses import replace

import pytest

from keryx.clock import DAY, HOUR
from keryx.core.context.rules.usage import ESTIMATED
from keryx.core.context.views.usage import show_usage
from keryx.core.conversations.rules.message import NewMessage, text_message
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.rules.title import MODEL_TITLE_MESSAGES_MAX
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.conversations.transactions.branch_session import undo
from keryx.core.conversations.transactions.change_session import close, rename
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.people.tables import people
from keryx.core.turns.rules.inbox import ATTEMPTS_MAX
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.fail_turn import Failure, fail_turn
from keryx.core.turns.transactions.flush_session import give_way
from keryx.core.turns.transactions.title_session import request_title
from keryx.core.turns.views.terminal import first_cursor, show_terminal
from keryx.core.turns.views.terminal_session import LocalChat
from keryx.core.upkeep.transactions.purge_session import purge_session
from keryx.errors import LeaseLost
from keryx.store.database import Database
from keryx.testing.builders import group
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage

pytestmark = pytest.mark.anyio

ANSWER = replace(
    text_message("assistant", '"A trip to Rome."'),
    input_tokens=50,
    cached_tokens=4,
    output_tokens=9,
    thinking_tokens=3,
    cost_micros=7,
)


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    return stage


async def exchange(
    stage: Stage, text: str = "Let us go to Rome", *, source: Source | None = None
) -> SessionId:
    """Play an exchange with a model."""
    accepted = await stage.accept(text, source=source)
    await stage.finish(await stage.begin(), wants_title=True)
    return accepted.session_id


async def begin_title(stage: Stage) -> BegunTurn:
    begun = await stage.begin()
    assert begun.purpose == "title"
    return begun


async def finish_title(stage: Stage, begun: BegunTurn, answer: NewMessage = ANSWER) -> None:
    await stage.finish(begun, None, silent=True, unsaid=answer)


async def title_of(stage: Stage, session_id: SessionId) -> tuple[str | None, str | None]:
    session = await stage.session(session_id)
    return session.title, session.title_by


async def test_after_the_first_exchange_the_model_titles_the_session_once_and_silently(
    stage: Stage,
) -> None:
    session_id = await exchange(stage)
    said, before = await stage.said(), await stage.session(session_id)
    assert await title_of(stage, session_id) == ("Let us go to Rome", "text")
    begun = await begin_title(stage)
    await finish_title(stage, begun)
    assert await title_of(stage, session_id) == ("A trip to Rome", "model")
    after = await stage.session(session_id)
    assert (after.last_active_at, after.last_seq) == (before.last_active_at, before.last_seq)
    assert (await stage.said(), await stage.texts(session_id)) == (said, ["Let us go to Rome", "yes"])
    await exchange(stage, "and then?")
    assert await stage.begin_if_any() is None


async def test_without_a_model_no_title_is_requested(stage: Stage) -> None:
    await stage.exchange("hello")
    assert await stage.begin_if_any() is None


async def test_a_title_that_a_person_sets_meanwhile_stays(stage: Stage) -> None:
    session_id = await exchange(stage)
    owner_id = (await stage.session(session_id)).owner_id
    begun = await begin_title(stage)
    await stage.do(lambda tx: rename(tx, session_id, "Mine", person_id=owner_id))
    await finish_title(stage, begun)
    assert await title_of(stage, session_id) == ("Mine", "person")
    await stage.accept("/new")
    named = (await stage.accept("again")).session_id
    await stage.do(lambda tx: rename(tx, named, "Mine too", person_id=owner_id))
    await stage.finish(await stage.begin(), wants_title=True)
    assert await stage.begin_if_any() is None


async def test_a_long_conversation_keeps_its_title(stage: Stage) -> None:
    session_id = await stage.exchange("hello")
    await stage.tamper(f"UPDATE sessions SET message_total = {MODEL_TITLE_MESSAGES_MAX + 1}")
    assert await stage.database.write(lambda tx: request_title(tx, session_id)) is None


@pytest.mark.parametrize("text", ["and now?", "!rollback c"])
async def test_a_message_interrupts_a_title_request_which_continues_after_it(stage: Stage, text: str) -> None:
    session_id = await exchange(stage)
    late = await begin_title(stage)
    accepted = await stage.accept(text)
    answering = await stage.begin()
    assert [item.id for item in answering.answers] == [accepted.inbox_id]
    with pytest.raises(LeaseLost):
        await finish_title(stage, late)
    await stage.finish(answering, wants_title=True)
    again = await begin_title(stage)
    assert again.answers[0].id == late.answers[0].id
    await finish_title(stage, again)
    assert await title_of(stage, session_id) == ("A trip to Rome", "model")
    assert (await stage.item(again.answers[0].id)).attempts == 1


async def test_a_waiting_title_request_follows_the_messages(stage: Stage) -> None:
    session_id = await exchange(stage)
    for text in ("one", "two"):
        accepted = await stage.accept(text)
        begun = await stage.begin()
        assert [item.id for item in begun.answers] == [accepted.inbox_id]
        await stage.finish(begun)
    await finish_title(stage, await begin_title(stage))
    assert (await title_of(stage, session_id))[1] == "model"


async def test_a_title_request_is_not_an_open_item_and_does_not_postpone_a_reset(
    stage: Stage,
) -> None:
    stage.set(reset=ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=60)))
    session_id = await exchange(stage)
    begun = await begin_title(stage)
    stage.clock.advance(HOUR + 1)
    # Its lease has expired, so its turn is recovered.
    await stage.recover()
    accepted = await stage.accept("good morning")
    assert (accepted.reset, accepted.session_id != session_id) == ("idle", True)
    purposes = {(await stage.begin()).purpose for _ in range(2)}
    assert purposes == {"reply", "title"}
    assert (await stage.turn(begun)).state == "lost"


async def test_a_title_request_is_not_shown(stage: Stage) -> None:
    await exchange(stage, source=LOCAL_CLI)
    place = LocalChat(source=LOCAL_CLI, settings=stage.settings)
    since = await stage.look(lambda tx: first_cursor(tx, place))

    async def sees() -> tuple[object, int, bool, bool]:
        seen = await stage.look(lambda tx: show_terminal(tx, place, since))
        return seen.turn, seen.queued, seen.is_at_rest, seen.is_due

    assert await sees() == (None, 0, True, True)
    begun = await begin_title(stage)
    assert await sees() == (None, 0, True, False)
    await stage.accept("/status", source=LOCAL_CLI)
    assert "Nothing is running." in (await stage.said("local"))[-1][1]
    await finish_title(stage, begun)


async def test_a_failed_title_request_keeps_the_first_words_and_notifies_no_one(stage: Stage) -> None:
    session_id = await exchange(stage)
    said = await stage.said()
    failure = Failure(reason="the provider is away", retry_at=stage.clock.now())
    for _ in range(ATTEMPTS_MAX):
        begun = await begin_title(stage)
        await stage.do(
            lambda tx, begun=begun: fail_turn(  # type: ignore[misc]
                tx, begun.held, failure=failure, ids=stage.ids
            )
        )
    [row] = await stage.rows("SELECT fate, fate_note FROM inbox WHERE purpose = 'title'")
    assert tuple(row) == ("failed", "the provider is away")
    assert (await title_of(stage, session_id), await stage.said()) == (("Let us go to Rome", "text"), said)
    await exchange(stage, "and then?")
    assert await stage.begin_if_any() is None, "it is asked for once"


async def test_an_answer_without_a_title_keeps_the_first_words(stage: Stage) -> None:
    session_id = await exchange(stage)
    await finish_title(stage, await begin_title(stage), text_message("assistant", ' "" \n'))
    assert await title_of(stage, session_id) == ("Let us go to Rome", "text")


async def test_an_equal_title_changes_nothing(stage: Stage) -> None:
    session_id = await exchange(stage)
    await finish_title(stage, await begin_title(stage), text_message("assistant", "Let us go to Rome"))
    assert await title_of(stage, session_id) == ("Let us go to Rome", "model")


async def test_a_title_request_of_a_dead_gateway_is_retried(stage: Stage) -> None:
    session_id = await exchange(stage)
    lost = await begin_title(stage)
    await stage.lose_holder()
    assert (await stage.recover()).turns == 1
    again = await begin_title(stage)
    assert again.answers[0].id == lost.answers[0].id
    await finish_title(stage, again)
    assert (await title_of(stage, session_id))[1] == "model"


async def test_undo_does_not_wait_for_a_title(stage: Stage) -> None:
    session_id = await exchange(stage)
    begun = await begin_title(stage)
    owner_id = (await stage.session(session_id)).owner_id
    await stage.do(lambda tx: undo(tx, session_id, actor=Actor(person_id=owner_id, give_way=give_way)))
    assert (await stage.turn(begun)).state == "lost"
    assert await stage.texts(session_id) == []


async def test_the_usage_of_a_title_counts_for_its_session_day_and_model(stage: Stage) -> None:
    session_id = await exchange(stage)
    await finish_title(stage, await begin_title(stage))
    session = await stage.session(session_id)
    counted = (session.input_tokens, session.cached_tokens, session.output_tokens)
    assert (*counted, session.thinking_tokens, session.cost_micros) == (50, 4, 9, 3, 7)
    person_id, now = session.owner_id, stage.clock.now()
    for of in (None, session_id):
        used = await stage.look(
            lambda tx, of=of: show_usage(  # type: ignore[misc]
                tx, person_id=person_id, since=0, until=now + 1, session_id=of
            )
        )
        assert (used.total.messages, used.total.input_tokens, used.total.thinking_tokens) == (2, 50, 3)
        assert [amount.cost_micros for amount in used.sessions.values()] == [7]
    assert "50 tokens in (4 cached), 9 out (3 thinking), less than $0.0001." in await says(stage, "/usage")


async def test_the_usage_of_a_forks_title_stays_when_its_parent_is_purged(stage: Stage) -> None:
    parent = await stage.exchange("hello")
    owner_id = (await stage.session(parent)).owner_id
    person = await stage.look(lambda tx: people.get_person(tx, owner_id))
    fork_id = await stage.do(lambda tx: fork_session(tx, stage.ids, parent, person=person))
    await stage.do(lambda tx: request_title(tx, fork_id))
    await finish_title(stage, await begin_title(stage))
    await stage.do(lambda tx: close(tx, parent, person_id=owner_id, reason="done"))
    await stage.do(lambda tx: purge_session(tx, parent, person_id=owner_id))
    kept = await stage.session(fork_id)
    assert (kept.message_total, kept.input_tokens, kept.thinking_tokens, kept.cost_micros) == (2, 50, 3, 7)


async def test_usage_is_shown_by_model_and_day_and_in_a_group_only_for_the_group(stage: Stage) -> None:
    private = await exchange(stage)
    await finish_title(stage, await begin_title(stage))
    await stage.tamper("UPDATE turns SET model = 'openai:small' WHERE purpose = 'title'")
    stage.clock.advance(DAY)
    spent = replace(text_message("assistant", "so"), input_tokens=1_000, output_tokens=20, cost_micros=25_000)
    person_id = (await stage.session(private)).owner_id
    await stage.do(lambda tx: append_message(tx, private, spent, person_id=person_id))
    await stage.tamper("UPDATE sessions SET model = 'openai:big'")
    assert (await says(stage, "/usage")).splitlines() == [
        "This conversation: 1,050 tokens in (4 cached), 29 out (3 thinking), about $0.0250.",
        "- openai:big: 1,000 tokens in (0 cached), 20 out, about $0.0250.",
        "- openai:small: 50 tokens in (4 cached), 9 out (3 thinking), less than $0.0001.",
        "Tool calls in it: 0.",
        "Today (openai:big): 1,000 tokens in (0 cached), 20 out, about $0.0250.",
        ESTIMATED,
    ]
    await stage.exchange("hello", source=group())
    assert (await says(stage, "/usage", source=group())).splitlines() == [
        "This conversation: no model was called.",
        "Tool calls in it: 0.",
        "Today: no model was called.",
        ESTIMATED,
    ]


async def says(stage: Stage, text: str, *, source: Source | None = None) -> str:
    await stage.accept(text, source=source, ref=stage.ids.token())
    return (await stage.said())[-1][1]
