"""The feed, the overview, usage and context: each person sees what concerns them."""

from datetime import UTC, date, datetime

import pytest

from keryx.clock import DAY, HOUR
from keryx.core.approvals import tables as approvals
from keryx.core.context.transactions import manage_memory
from keryx.core.context.views.prompt_facts import show_context
from keryx.core.context.views.usage import Amount, Usage, show_usage
from keryx.core.conversations.rules.event import START, Position
from keryx.core.conversations.rules.message import NewMessage, TextPart, ToolCallPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_settings import Personality
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.transactions import change_session
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.conversations.views.feed import end, list_after, list_of_session
from keryx.core.deliveries.rules.route import ORIGIN, Address
from keryx.core.deliveries.tables import home_channels
from keryx.core.processes import tables as processes
from keryx.core.processes.rules import NoticePolicy
from keryx.core.schedules.rules.plan import SchedulePlan
from keryx.core.schedules.transactions.manage_schedule import create_schedule
from keryx.core.turns.tables import turns
from keryx.core.turns.views.overview import Overview, show_overview
from keryx.core.values.time_zone import micros_of
from keryx.errors import InvalidValue, NotFound
from keryx.ids import Ids
from keryx.store.database import Database, Tx
from keryx.testing.clock import FakeClock
from tests.conformance.talk import PHONE, Talk

pytestmark = pytest.mark.anyio


@pytest.fixture
async def talk(database: Database, ids: Ids) -> Talk:
    return await Talk.begin(database, ids)


async def test_the_feed_goes_on_from_any_position(talk: Talk) -> None:
    session_id = await talk.session("a", "b")
    events = await talk.database.read(lambda tx: list_after(tx, person_id=talk.owner.id))
    assert [event.kind for event in events] == ["session.opened", "message", "message"]
    middle = events[0].position
    rest = await talk.database.read(lambda tx: list_after(tx, person_id=talk.owner.id, after=middle))
    assert rest == events[1:]
    assert await talk.database.read(end) == events[-1].position
    assert all(event.session_id == session_id for event in events)


async def test_an_empty_feed_ends_where_it_starts(talk: Talk) -> None:
    assert await talk.database.read(end) == START
    assert Position.parse(str(START)) == START


async def test_one_session_s_stream_has_no_gaps_and_is_not_for_others(talk: Talk) -> None:
    session_id = await talk.session("a", "b")
    await talk.session("elsewhere")
    stranger = await talk.stranger()
    events = await talk.database.read(
        lambda tx: list_of_session(tx, session_id, person_id=talk.owner.id, after_number=1)
    )
    assert [event.number for event in events] == [2, 3]
    with pytest.raises(NotFound):
        await talk.database.read(lambda tx: list_of_session(tx, session_id, person_id=stranger.id))
    assert await talk.database.read(lambda tx: list_after(tx, person_id=stranger.id)) == []


async def test_facts_are_asked_for_in_bounded_numbers(talk: Talk) -> None:
    for limit in (0, 1_001):
        with pytest.raises(InvalidValue, match="events at once"):
            await talk.database.read(lambda tx, n=limit: list_after(tx, person_id=talk.owner.id, limit=n))  # type: ignore[misc]


async def spend(talk: Talk, session_id: SessionId, at: datetime, tokens: int) -> None:
    message = NewMessage(
        role="assistant",
        parts=(TextPart(text="x"), ToolCallPart(call_id="c", name="n", arguments={})),
        input_tokens=tokens,
        cached_tokens=1,
        output_tokens=2,
        thinking_tokens=1,
        cost_micros=3,
        created_at=micros_of(at),
    )
    await talk.database.write(lambda tx: append_message(tx, session_id, message, person_id=talk.owner.id))


async def used(talk: Talk, person_id: int | None = None, **how: str) -> Usage:
    since, until = micros_of(datetime(2026, 3, 1, tzinfo=UTC)), micros_of(datetime(2026, 4, 1, tzinfo=UTC))
    who = talk.owner.id if person_id is None else person_id
    return await talk.database.read(lambda tx: show_usage(tx, person_id=who, since=since, until=until, **how))


async def test_usage_is_told_by_day_model_and_session(talk: Talk) -> None:
    one, other = await talk.session(), await talk.session()
    await talk.database.write(lambda tx: change_session.set_model(tx, other, "big", person_id=talk.owner.id))
    await spend(talk, one, datetime(2026, 3, 1, tzinfo=UTC), 10)
    await spend(talk, one, datetime(2026, 3, 2, 12, tzinfo=UTC), 20)
    await spend(talk, other, datetime(2026, 3, 2, 23, 59, tzinfo=UTC), 40)
    await spend(talk, other, datetime(2026, 4, 1, tzinfo=UTC), 80)
    usage = await used(talk)
    assert usage.total == Amount(
        messages=3,
        tool_calls=3,
        input_tokens=70,
        cached_tokens=3,
        output_tokens=6,
        thinking_tokens=3,
        cost_micros=9,
    )
    assert {day: amount.input_tokens for day, amount in usage.days.items()} == {
        date(2026, 3, 1): 10,
        date(2026, 3, 2): 60,
    }
    assert {model: amount.input_tokens for model, amount in usage.models.items()} == {None: 30, "big": 40}
    assert {each: amount.input_tokens for each, amount in usage.sessions.items()} == {one: 30, other: 40}
    assert (await used(talk, session_id=other)).total.input_tokens == 40


async def test_a_turn_s_own_model_counts(talk: Talk) -> None:
    session_id = await talk.session()
    await talk.ask(session_id, "Why?", ref="1")
    begun = await talk.turn(session_id)

    def answered(tx: Tx) -> None:
        turns.set_prompt(tx, begun.turn_id, model="small", prompt_hash="0", tools_hash="0")

    await talk.database.write(answered)
    now = (await talk.record(session_id)).started_at
    usage = await talk.database.read(
        lambda tx: show_usage(tx, person_id=talk.owner.id, since=now - DAY, until=now + DAY)
    )
    assert usage.models.keys() == {"small"}


async def test_days_are_those_of_the_clocks_on_the_wall(talk: Talk) -> None:
    session_id = await talk.session()
    # Clocks in Rome go forward on this night, in Kathmandu they are at 05:45.
    await spend(talk, session_id, datetime(2026, 3, 28, 23, 0, tzinfo=UTC), 1)
    await spend(talk, session_id, datetime(2026, 3, 29, 22, 0, tzinfo=UTC), 2)
    await spend(talk, session_id, datetime(2026, 3, 29, 18, 15, tzinfo=UTC), 4)
    rome, nepal = await used(talk, zone="Europe/Rome"), await used(talk, zone="Asia/Kathmandu")
    assert {day.day: amount.input_tokens for day, amount in rome.days.items()} == {29: 5, 30: 2}
    assert {day.day: amount.input_tokens for day, amount in nepal.days.items()} == {29: 1, 30: 6}


async def test_nobody_learns_what_others_used(talk: Talk) -> None:
    session_id = await talk.session()
    stranger = await talk.stranger()
    await spend(talk, session_id, datetime(2026, 3, 2, tzinfo=UTC), 10)
    assert await used(talk, stranger.id) == Usage(total=Amount(), days={}, models={}, sessions={})
    with pytest.raises(NotFound):
        await used(talk, stranger.id, session_id=session_id)


async def test_the_board_shows_what_runs_and_waits(talk: Talk, clock: FakeClock) -> None:
    busy, waiting = await talk.session("first"), await talk.session("second")
    await talk.ask(busy, "Do it", ref="1")
    begun = await talk.turn(busy)
    item_id = await talk.ask(waiting, "And then?", ref="2")

    def more(tx: Tx) -> tuple[int, int]:
        approval_id = approvals.add_approval(
            tx,
            question="Really?",
            expires_at=tx.now + HOUR,
            session_id=busy,
            turn_id=begun.turn_id,
            call_id="c",
            person_id=talk.owner.id,
        )
        process_id = processes.add_process(
            tx,
            session_id=busy,
            owner_id=talk.owner.id,
            notice=NoticePolicy(),
            command="make",
            workspace=None,
            backend="local",
            host=None,
            folder=None,
            has_pty=0,
            pins_until_at=None,
        )
        plan = SchedulePlan(
            name="News", rule="every 2h", zone="UTC", parts=(TextPart(text="What is new?"),), route=ORIGIN
        )
        create_schedule(tx, plan, person_id=talk.owner.id, origin=LOCAL_CLI)
        return approval_id, process_id

    approval_id, process_id = await talk.database.write(more)
    board = await talk.database.read(lambda tx: show_overview(tx, person_id=talk.owner.id))
    assert [(turn.id, turn.session_id, turn.title, turn.state) for turn in board.turns] == [
        (begun.turn_id, busy, "first", "running")
    ]
    assert [(item.id, item.preview) for item in board.queue] == [(item_id, "And then?")]
    assert [(approval.id, approval.question) for approval in board.approvals] == [(approval_id, "Really?")]
    assert [(process.id, process.command) for process in board.processes] == [(process_id, "make")]
    [schedule] = board.schedules
    assert (schedule.name, schedule.due_at) == ("News", clock.now() + 2 * HOUR)


async def test_the_board_of_a_stranger_is_empty(talk: Talk) -> None:
    session_id = await talk.session("first")
    await talk.ask(session_id, "Do it", ref="1")
    stranger = await talk.stranger()
    board = await talk.database.read(lambda tx: show_overview(tx, person_id=stranger.id))
    assert board == Overview(turns=(), queue=(), approvals=(), processes=(), schedules=())
    mine = await talk.database.read(lambda tx: show_overview(tx, person_id=talk.owner.id))
    assert len(mine.queue) == 1


async def test_context_holds_what_the_agent_is_told(talk: Talk) -> None:
    session_id = await talk.session("hello", source=PHONE)
    who = talk.owner.id

    def tell(tx: Tx) -> None:
        change_session.rename(tx, session_id, "Rome", person_id=who)
        change_session.set_workspace(tx, session_id, "/tmp", person_id=who)
        change_session.set_personality(tx, session_id, Personality(name="p", text="Be brief."), person_id=who)
        manage_memory.remember(tx, session_id, "likes trains", person_id=who)
        manage_memory.remember(tx, session_id, "lives in Rome", person_id=who)
        for chat_id, platform in (("-1", "telegram"), ("ops", "slack")):
            address = Address(platform=platform, account=None, chat_id=chat_id, thread_id=None)
            home_channels.set_home(
                tx, home_channels.Home(address, "Family" if chat_id == "-1" else None), set_by=who
            )

    await talk.database.write(tell)
    facts = await talk.database.read(
        lambda tx: show_context(tx, session_id, person_id=who, platforms=frozenset({"telegram"}))
    )
    assert (facts.source, facts.session_id, facts.title) == (PHONE, session_id, "Rome")
    assert (facts.workspace, facts.personality) == ("/tmp", "Be brief.")
    assert facts.memories == ("likes trains", "lives in Rome")
    assert facts.homes == {"slack": "ops", "telegram": "Family"}
    assert facts.destinations == ("origin", "local", "slack", "telegram")


async def test_context_of_a_bare_session_is_short(talk: Talk) -> None:
    session_id = await talk.session()
    stranger = await talk.stranger()
    facts = await talk.database.read(lambda tx: show_context(tx, session_id, person_id=talk.owner.id))
    assert (facts.personality, facts.memories, facts.homes) == (None, (), {})
    with pytest.raises(NotFound):
        await talk.database.read(lambda tx: show_context(tx, session_id, person_id=stranger.id))
