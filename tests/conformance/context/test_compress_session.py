"""A request to summarise is a turn of its own that adds a cover and sends a notice."""

from dataclasses import replace
from itertools import count

import pytest

from keryx.core.context.rules.context_usage import ContextUsage
from keryx.core.context.rules.cover import Summary, SummaryCost
from keryx.core.context.tables.covers import list_covers
from keryx.core.context.transactions.cover_messages import Covered, CoverRefused, cover_held
from keryx.core.context.views.prompt_facts import find_memories
from keryx.core.context.views.usage import Usage, show_context_usage, show_usage
from keryx.core.conversations.rules.archive import Archive, CoverLine, MessageLine, SessionLine, parse_line
from keryx.core.conversations.rules.message import text_of
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.transactions.import_session import import_session
from keryx.core.conversations.views.archive import begin_export
from keryx.core.people.tables import people
from keryx.core.turns.tables import turns
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.fail_turn import hand_back_turn
from keryx.core.turns.transactions.record_step import record_context_usage
from keryx.errors import LeaseLost, NotFound
from keryx.store.database import Database, ReadTx
from keryx.testing.builders import dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage

SPENT = SummaryCost(model="m", input_tokens=900, cached_tokens=100, output_tokens=40, cost_micros=2_500)
SUMMARY = Summary(first_seq=1, last_seq=4, text="in short", tokens_before=90, tokens_after=9, cost=SPENT)
REFS = count()
USAGE = ContextUsage(window=1_000, system=10, tools=20, history=300, attachments=70)


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    return stage


async def talked(stage: Stage, exchanges: int = 3) -> SessionId:
    said = [await stage.exchange(f"question {number}", f"answer {number}") for number in range(exchanges)]
    return said[-1]


async def ana(stage: Stage) -> int:
    def find(tx: ReadTx) -> int:
        person = people.find_by_identity(tx, platform="telegram", account="", user_id="ana")
        assert person is not None
        return person.id

    return await stage.look(find)


async def cover(stage: Stage, begun: BegunTurn, summary: Summary = SUMMARY) -> Covered | CoverRefused:
    person_id = await ana(stage)
    return await stage.do(lambda tx: cover_held(tx, begun.held, summary, person_id=person_id))


async def hear(stage: Stage, text: str) -> None:
    """Accept a message; the same text is another message each time."""
    await stage.accept(text, ref=f"m{next(REFS)}")


async def reply(stage: Stage, text: str) -> str:
    await hear(stage, text)
    return (await stage.said())[-1][1]


async def test_a_request_is_a_turn_that_adds_nothing_and_ends_with_a_notice(stage: Stage) -> None:
    session_id = await talked(stage)
    before = await stage.session(session_id)
    stage.clock.advance(1)
    await hear(stage, "/compress the hotel")
    begun = await stage.begin()
    assert (begun.purpose, text_of(begun.answers[-1].parts)) == ("compress", "the hotel")
    assert await cover(stage, begun) == Covered(no=1)
    await stage.finish(begun, None, notice="It is done.")
    after = await stage.session(session_id)
    assert (after.message_count, after.last_active_at) == (before.message_count, before.last_active_at)
    assert (await stage.said())[-1] == (str((await stage.deliveries())[0].address), "It is done.")
    assert (await stage.item(begun.answers[0].id)).fate == "answered"
    assert await stage.begin_if_any() is None


async def test_notes_are_kept_with_the_summary_or_not_at_all(stage: Stage) -> None:
    session_id = await talked(stage)
    await hear(stage, "/compress")
    begun = await stage.begin()
    person_id = await ana(stage)

    async def kept() -> list[tuple[str, int | None, int | None]]:
        found = await stage.look(
            lambda tx: find_memories(tx, session_id, person_id=person_id, words="tea Rome", limit=9)
        )
        return [(note.text, note.author_id, note.seq) for note in found]

    noted = replace(SUMMARY, notes=("Likes tea.", "Lives in Rome.", "likes  TEA."))
    assert isinstance(await cover(stage, begun, replace(noted, first_seq=99, last_seq=99)), CoverRefused)
    assert await kept() == []
    assert isinstance(await cover(stage, begun, noted), Covered)
    assert sorted(await kept()) == [
        ("Likes tea.", person_id, SUMMARY.last_seq),
        ("Lives in Rome.", person_id, SUMMARY.last_seq),
    ]


async def test_an_empty_session_has_nothing_to_summarise(stage: Stage) -> None:
    assert (await reply(stage, "/compress")).startswith("Nothing was said here yet")
    assert await stage.begin_if_any() is None


async def test_a_request_runs_alone_and_in_order(stage: Stage) -> None:
    await talked(stage)
    for text in ("first", "/compress", "second", "/compress"):
        await hear(stage, text)
    purposes = []
    while (begun := await stage.begin_if_any()) is not None:
        purposes.append((begun.purpose, [text_of(item.parts) for item in begun.answers]))
        await stage.finish(begun, "yes" if begun.purpose == "reply" else None)
    assert purposes == [("reply", ["first"]), ("compress", [""]), ("reply", ["second"]), ("compress", [""])]


async def test_a_retried_question_does_not_merge_with_a_request(stage: Stage) -> None:
    await talked(stage)
    await hear(stage, "first")
    begun = await stage.begin()
    await hear(stage, "/compress")
    await stage.do(lambda tx: hand_back_turn(tx, begun.held))
    again = await stage.begin()
    assert (again.purpose, len(again.answers)) == ("reply", 1)
    await stage.finish(again)
    asked = await stage.begin()
    assert asked.purpose == "compress"
    await hear(stage, "second")
    await stage.do(lambda tx: hand_back_turn(tx, asked.held))
    asked_again = await stage.begin()
    assert (asked_again.purpose, len(asked_again.answers)) == ("compress", 1)


async def test_a_request_that_was_lost_with_its_gateway_runs_again(stage: Stage) -> None:
    await talked(stage)
    await hear(stage, "/compress")
    lost = await stage.begin()
    await stage.lose_holder()
    await stage.recover()
    assert (await stage.begin()).answers[0].id == lost.answers[0].id


async def test_a_late_holder_covers_nothing(stage: Stage) -> None:
    session_id = await talked(stage)
    await hear(stage, "/compress")
    begun = await stage.begin()
    late = replace(begun.lease, epoch=begun.lease.epoch - 1)
    for other in (late, replace(begun.lease, holder="x")):
        with pytest.raises(LeaseLost):
            await cover(stage, replace(begun, held=replace(begun.held, lease=other)))
    assert await stage.look(lambda tx: list_covers(tx, session_id)) == []
    assert await cover(stage, begun, replace(SUMMARY, last_seq=99)) == CoverRefused(reason="not_on_path")


async def test_undo_drops_the_last_summary_first(stage: Stage) -> None:
    session_id = await talked(stage)
    assert await reply(stage, "/compress undo") == "No summary covers a message here."
    await hear(stage, "/compress")
    begun = await stage.begin()
    await cover(stage, begun, replace(SUMMARY, last_seq=2))
    await cover(stage, begun)
    await stage.finish(begun, None)
    assert (await reply(stage, "/compress undo")).startswith("The summary of messages 1 to 4 is taken back")
    (left,) = await stage.look(lambda tx: list_covers(tx, session_id))
    assert left.last_seq == 2
    assert (await reply(stage, "/compress undo")).startswith("The summary of messages 1 to 2 is taken back")
    assert await stage.look(lambda tx: list_covers(tx, session_id)) == []


async def test_a_fork_does_not_drop_the_summaries_of_its_parent(stage: Stage) -> None:
    session_id = await talked(stage)
    await hear(stage, "/compress")
    begun = await stage.begin()
    await cover(stage, begun)
    await stage.finish(begun, None)
    await hear(stage, "/fork")
    assert await reply(stage, "/compress undo") == "No summary covers a message here."
    assert len(await stage.look(lambda tx: list_covers(tx, session_id))) == 1


async def test_a_note_about_messages_of_several_people_has_no_author(stage: Stage) -> None:
    ben = await stage.meet("ben")
    await stage.exchange("question 0", source=group("ben"))
    session_id = await stage.exchange("question 1", source=group("ana"))
    for last_seq, note in ((2, "Likes tea."), (4, "Is in Rome.")):
        await stage.accept(f"question {last_seq}", source=group("ana"))
        begun = await stage.begin()
        summary = replace(SUMMARY, first_seq=1, last_seq=last_seq, notes=(note,))
        assert isinstance(await cover(stage, begun, summary), Covered)
        await stage.finish(begun)
    found = await stage.look(
        lambda tx: find_memories(tx, session_id, person_id=ben.id, words="tea Rome", limit=9)
    )
    assert {(each.text, each.author_id) for each in found} == {("Likes tea.", ben.id), ("Is in Rome.", None)}


async def test_the_usage_of_a_summary_is_counted_and_exported(stage: Stage) -> None:
    session_id = await talked(stage)
    person_id = await ana(stage)
    assert "Summaries in it" not in await reply(stage, "/usage")
    await hear(stage, "/compress")
    begun = await stage.begin()
    await cover(stage, begun)
    await stage.finish(begun, None)
    told = "900 tokens in (100 cached), 40 out, about $0.0025."
    assert (await reply(stage, "/usage")).splitlines()[:4] == [
        f"This conversation (m): {told}",
        f"Summaries in it: {told}",
        "Tool calls in it: 0.",
        f"Today (m): {told}",
    ]
    until = stage.clock.now() + 1

    async def used_in(only: SessionId | None) -> Usage:
        return await stage.look(
            lambda tx: show_usage(tx, person_id=person_id, since=0, until=until, session_id=only)
        )

    for used in (await used_in(None), await used_in(session_id)):
        assert used.models["m"].input_tokens == 900
        assert (used.total.output_tokens, used.sessions[session_id].cost_micros) == (40, 2_500)
    others = await stage.look(lambda tx: show_usage(tx, person_id=person_id + 1, since=0, until=until))
    assert others.models == {}


async def test_the_usage_of_a_summary_is_imported_into_another_store(stage: Stage) -> None:
    session_id = await talked(stage)
    person_id = await ana(stage)
    await hear(stage, "/compress")
    begun = await stage.begin()
    await cover(stage, begun)
    page = await stage.look(lambda tx: begin_export(tx, session_id, person_id=person_id))
    (line,) = [each for each in map(parse_line, page.lines) if isinstance(each, CoverLine)]
    assert (line.model, line.input_tokens, line.cost_micros) == ("m", 900, 2_500)
    said = tuple(
        MessageLine(branch_no=0, seq=seq, role="user", body='"hi"', created_at=1) for seq in range(1, 5)
    )
    session = SessionLine(id="20200101_000000_0000abcd", source=dm(), started_at=1, last_active_at=2)
    archive = Archive(session=session, covers=(line,), messages=said)
    owner = await stage.look(lambda tx: people.get_person(tx, person_id))
    other_id = await stage.do(lambda tx: import_session(tx, stage.ids, archive, owner=owner))
    until = stage.clock.now() + 1
    used = await stage.look(
        lambda tx: show_usage(tx, person_id=person_id, since=0, until=until, session_id=other_id)
    )
    assert used.models["m"].output_tokens == 40


async def test_the_context_usage_of_the_last_request_is_stored_and_shown(stage: Stage) -> None:
    session_id = await talked(stage)
    person_id = await ana(stage)
    assert await stage.look(lambda tx: show_context_usage(tx, session_id, person_id=person_id)) is None

    async def ask(usage: ContextUsage) -> BegunTurn:
        await hear(stage, "more")
        begun = await stage.begin()
        await stage.do(lambda tx: record_context_usage(tx, begun.held, usage=usage))
        await stage.finish(begun)
        return begun

    await ask(replace(USAGE, history=1))
    begun = await ask(USAGE)
    await stage.exchange("not asked of any model")
    assert await stage.look(lambda tx: show_context_usage(tx, session_id, person_id=person_id)) == USAGE
    assert "400 of 1,000 tokens (40 %)" in await reply(stage, "/usage")
    with pytest.raises(NotFound):
        await stage.look(lambda tx: show_context_usage(tx, session_id, person_id=person_id + 1))
    with pytest.raises(LeaseLost):
        await stage.do(lambda tx: record_context_usage(tx, begun.held, usage=USAGE))
    assert await stage.look(lambda tx: turns.find_context_usage(tx, "nowhere")) is None


async def test_a_notice_of_a_turn_without_an_origin_is_not_sent(stage: Stage) -> None:
    await stage.accept("hello", source=dm())
    begun = await stage.begin()
    await stage.tamper("UPDATE turns SET origin = NULL")
    before = await stage.said()
    await stage.finish(begun, None, notice="It is done.")
    assert await stage.said() == before
