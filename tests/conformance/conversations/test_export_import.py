"""An exported session is the same after its import."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import keryx
from keryx.clock import SECOND
from keryx.core.context.tables.covers import drop_cover
from keryx.core.context.transactions.cover_messages import Covered, Summary, cover
from keryx.core.conversations.rules.archive import (
    Archive,
    ArchiveParser,
    BranchLine,
    MessageLine,
    SessionLine,
    TagLine,
    TurnLine,
)
from keryx.core.conversations.rules.message import ToolCallPart, text_message
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.tables import imported
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.conversations.transactions.import_session import import_session
from keryx.core.conversations.views.archive import find_turn
from keryx.core.people.tables import people
from keryx.core.turns.transactions.finish_turn import Reply, finish_turn
from keryx.core.turns.transactions.title_session import request_title
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.errors import InvalidValue, NotFound
from keryx.ids import Ids
from keryx.library.client import Keryx
from keryx.store.database import Database, RaceLost, Tx
from keryx.testing.clock import FakeClock
from tests.conformance.talk import FAMILY, Talk, shown_messages

pytestmark = pytest.mark.anyio

SESSION = SessionLine(id="20250101_000000_0000000a", source=LOCAL_CLI, started_at=1, last_active_at=2)


@pytest.fixture
async def kx(store_address: str, clock: FakeClock, ids: Ids) -> AsyncIterator[Keryx]:
    async with keryx.open(store_address, clock=clock, ids=ids) as opened:
        yield opened


@pytest.fixture
async def talk(database: Database, ids: Ids) -> Talk:
    return await Talk.begin(database, ids)


async def lines(kx: Keryx, session_id: str) -> list[str]:
    return [line async for line in kx.export(session_id)]


def renamed(text: list[str], old: str, new: str) -> list[str]:
    return [line.replace(old, new) for line in text]


async def full(kx: Keryx) -> SessionId:
    """A session with everything an export may hold."""
    session = await kx.create_session(title="Trip", project="Italy", workspace="/w", model="big")
    call = ToolCallPart(call_id="c", name="look", arguments={"x": 1})
    await kx.append(session.id, role="user", text="a\x00\ud800 ö 漢")
    await kx.append(
        session.id, role="assistant", text="b", tool_calls=[call], input_tokens=3, finish_reason="stop"
    )
    await kx.append(session.id, role="tool", text="c", tool_call_id="c")
    await kx.undo(session.id)
    await kx.append(session.id, role="user", text="A", author="Ana", cost_micros=7)
    await kx.tag(session.id, "rome")
    await kx.tag(session.id, "food")
    await kx.pin(session.id)
    await kx.close_session(session.id, reason="done")
    return session.id


async def test_an_import_into_the_same_store_equals_the_original(kx: Keryx, clock: FakeClock) -> None:
    original = await full(kx)
    clock.advance(SECOND)
    exported = await lines(kx, original)
    [copy] = await kx.import_lines(exported)
    assert copy != original
    assert renamed(await lines(kx, copy), copy, original) == exported
    before, after = await kx.get_session(original), await kx.get_session(copy)
    assert before._replace(id=copy, feed_no=after.feed_no) == after
    assert [message.text for message in await kx.transcript(copy)] == ["A"]


async def test_an_import_keeps_a_free_id(kx: Keryx, tmp_path: object) -> None:
    exported = await lines(kx, await full(kx))
    async with keryx.open(f"{tmp_path}/other.db") as other:
        [session_id] = await other.import_lines([*exported, "", "\n"])
        assert await lines(other, session_id) == exported
        found = await other.search("漢")
        assert [hits.session_id for hits in found.sessions] == [session_id]
        await other.wait_indexed()
        found = await other.search("A", session_id=session_id)
        assert [hits.session_id for hits in found.sessions] == [session_id]


async def test_an_imported_fork_needs_no_parent(kx: Keryx) -> None:
    first = await kx.create_session()
    for text in ("a", "b", "c", "d"):
        await kx.append(first.id, role="user", text=text)
    fork = await kx.fork(first.id, at=3)
    await kx.append(fork.id, role="user", text="e")
    await kx.pop(fork.id)
    await kx.pop(fork.id)
    await kx.append(fork.id, role="user", text="f")
    exported = await lines(kx, fork.id)
    [copy] = await kx.import_lines(exported)
    assert [message.text for message in await kx.transcript(copy)] == ["a", "b", "f"]
    assert renamed(await lines(kx, copy), copy, fork.id) == exported
    await kx.switch_branch(copy, 0)
    assert [message.text for message in await kx.transcript(copy)] == ["a", "b", "c", "e"]


async def test_several_sessions_are_imported_from_one_stream(kx: Keryx) -> None:
    both = [await full(kx), await full(kx)]

    async def stream() -> AsyncIterator[str]:
        for session_id in both:
            async for line in kx.export(session_id):
                yield line

    assert len(await kx.import_lines(stream())) == 2
    assert await kx.import_lines([]) == []


async def test_an_invalid_session_is_not_imported_at_all(kx: Keryx) -> None:
    exported = await lines(kx, await full(kx))
    before = await kx.count()
    with pytest.raises(InvalidValue, match="is not a line of an exported session"):
        await kx.import_lines([*exported, "torn"])
    assert await kx.count() == before


async def test_long_sessions_are_exported_in_pages(kx: Keryx) -> None:
    session = await kx.create_session()
    await kx.append_all(session.id, [text_message("user", str(number)) for number in range(1_000)])
    exported = await lines(kx, session.id)
    assert len(exported) == 1_001
    [copy] = await kx.import_lines(exported)
    assert renamed(await lines(kx, copy), copy, session.id) == exported


async def test_exporting_an_invisible_session_is_refused(talk: Talk, store_address: str) -> None:
    session_id = await talk.session("a")
    stranger = await talk.stranger()
    async with keryx.open(store_address, person=stranger.id) as kx:
        with pytest.raises(NotFound):
            await lines(kx, session_id)


async def test_an_imported_group_session_is_private(talk: Talk) -> None:
    overheard = await talk.session("secret", source=FAMILY)
    stranger = await talk.stranger()
    archive = Archive(session=replace(SESSION, source=FAMILY))
    await talk.database.write(lambda tx: import_session(tx, talk.ids, archive, owner=stranger))
    audiences = await talk.database.read(lambda tx: people.list_audiences(tx, stranger.id))
    assert (await talk.record(overheard)).audience_id not in audiences


async def test_imported_turns_have_ended(talk: Talk) -> None:
    turns = (
        TurnLine(no=1, branch_no=0, state="finished", purpose="reply", begun_at=5, ended_at=6, model="m"),
        TurnLine(no=2, branch_no=0, state="running", purpose="reply", begun_at=7, zone="Europe/Rome"),
    )
    messages = tuple(
        MessageLine(branch_no=0, seq=seq, role="user", body='"x"', created_at=seq, turn=seq) for seq in (1, 2)
    )
    archive = Archive(session=SESSION, turns=turns, messages=messages)
    session_id = await talk.database.write(lambda tx: import_session(tx, talk.ids, archive, owner=talk.owner))
    assert await talk.texts(session_id) == ["x", "x"]
    ids = [message.turn_id for message in await talk.database.read(lambda tx: shown_messages(tx, session_id))]
    lost = await talk.database.read(lambda tx: find_turn(tx, ids[1] or 0, no=2))
    assert lost == replace(turns[1], state="lost", ended_at=7)
    assert await talk.database.read(lambda tx: find_turn(tx, 99, no=1)) is None


async def test_an_import_replaces_an_invalid_id(talk: Talk) -> None:
    archive = Archive(session=replace(SESSION, id="../etc/passwd", project="New"), tags=(TagLine(tag="t"),))
    session_id = await talk.database.write(lambda tx: import_session(tx, talk.ids, archive, owner=talk.owner))
    assert session_id.startswith("2026")
    again = await talk.database.write(lambda tx: import_session(tx, talk.ids, archive, owner=talk.owner))
    assert (await talk.record(session_id)).project_id == (await talk.record(again)).project_id is not None


async def test_the_events_of_an_imported_session_have_no_gaps(talk: Talk) -> None:
    messages = tuple(
        MessageLine(branch_no=branch, seq=seq, role="user", body='"x"', created_at=0, input_tokens=2)
        for branch, seq in ((0, 1), (0, 2), (1, 3))
    )
    branch = BranchLine(no=1, reason="undo", created_at=1, parent_no=0, parent_seq=1)
    archive = Archive(session=replace(SESSION, active_branch_no=1), branches=(branch,), messages=messages)
    session_id = await talk.database.write(lambda tx: import_session(tx, talk.ids, archive, owner=talk.owner))
    assert await talk.facts(session_id) == ["session.opened", "message", "message", "message"]
    assert len(await talk.texts(session_id)) == 2
    await talk.say(session_id, "goes on")
    assert (await talk.facts(session_id))[-1] == "message"
    assert (await talk.record(session_id)).last_seq == 4


async def test_an_id_that_is_in_use_is_refused(talk: Talk) -> None:
    def twice(tx: Tx) -> None:
        columns = {"owner_id": talk.owner.id, "audience_id": 1, "project_id": None, "last_branch_no": 0}
        imported.add_session(tx, SESSION, **columns)  # type: ignore[arg-type]
        with pytest.raises(RaceLost):
            imported.add_session(tx, SESSION, **columns)  # type: ignore[arg-type]

    await talk.database.write(twice)


async def test_summaries_and_turns_are_imported_with_a_session_and_a_fork(
    talk: Talk, store_address: str
) -> None:
    first = await talk.session()
    for number in range(3):
        await talk.ask(first, f"question {number}", ref=str(number))
        await talk.answer(first, f"answer {number}")
    fork = await talk.database.write(lambda tx: fork_session(tx, talk.ids, first, person=talk.owner, at=5))
    await talk.say(fork, "a", "b", "c")

    def summarise(tx: Tx) -> None:
        for session_id, ends, text in (
            (first, (1, 2), "theirs"),
            (fork, (6, 7), "own"),
            (fork, (3, 4), "gone"),
        ):
            summary = Summary(
                first_seq=ends[0], last_seq=ends[1], text=text, tokens_before=9, tokens_after=1, focus="f"
            )
            assert isinstance(cover(tx, session_id, summary, person_id=talk.owner.id), Covered)
        assert drop_cover(tx, session_id=fork, no=2)

    await talk.database.write(summarise)
    async with keryx.open(store_address, clock=FakeClock(), ids=Ids(seed=2)) as kx:
        exported = await lines(kx, fork)
        [copy] = await kx.import_lines(exported)
        assert renamed(await lines(kx, copy), copy, fork) == exported
        assert await kx.conversation(copy) == await kx.conversation(fork)
    kinds = [json.loads(line)["type"] for line in exported]
    assert (kinds.count("turn"), kinds.count("cover"), kinds.count("message")) == (3, 3, 8)


ACTS = st.tuples(st.sampled_from(["say", "undo", "redo", "fork", "clear", "pop"]), st.integers(0, 9))


@given(st.lists(ACTS, min_size=1, max_size=8))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_an_import_equals_the_original_after_any_changes(
    kx: Keryx, acts: list[tuple[str, int]]
) -> None:
    session_id: str = (await kx.create_session()).id
    for act, number in acts:
        await kx.append(session_id, role="user", text=f"{act} {number}", input_tokens=number)
        match act:
            case "undo":
                await kx.undo(session_id)
            case "redo":
                await kx.redo(session_id)
            case "clear":
                await kx.clear(session_id)
            case "pop":
                await kx.pop(session_id)
            case "fork":
                shown = await kx.transcript(session_id)
                session_id = (await kx.fork(session_id, at=shown[number % len(shown)].seq)).id
            case _:
                pass
    exported = await lines(kx, session_id)
    [copy] = await kx.import_lines(exported)
    assert renamed(await lines(kx, copy), copy, session_id) == exported
    original = [(message.seq, message.body) for message in await kx.transcript(session_id, last=None)]
    assert [(message.seq, message.body) for message in await kx.transcript(copy, last=None)] == original
    parser = ArchiveParser()
    for line in exported:
        parser.add(line)
    archive = parser.end()
    assert archive is not None
    counted = await kx.get_session(copy)
    assert counted.message_total == len(archive.messages)
    assert counted.input_tokens == sum(message.input_tokens for message in archive.messages)


async def test_thinking_and_the_usage_of_unsaid_answers_are_imported(kx: Keryx, talk: Talk) -> None:
    session_id = await talk.session("Rome?")
    await kx.append(session_id, role="assistant", text="Yes.", output_tokens=9, thinking_tokens=4)
    await talk.ask(session_id, "And then?", ref="1")
    begun = await talk.turn(session_id)
    reply = Reply(
        message=text_message("assistant", "Oslo."),
        unsaid=replace(text_message("assistant", "x"), input_tokens=7),
    )
    await talk.database.write(lambda tx: finish_turn(tx, begun.held, reply=reply, ids=talk.ids))
    await talk.database.write(lambda tx: request_title(tx, session_id))
    naming = await talk.turn(session_id)
    answer = replace(text_message("assistant", "A trip"), input_tokens=5, output_tokens=3, cost_micros=2)
    title = Reply(message=None, silent=True, unsaid=answer)
    await talk.database.write(lambda tx: finish_turn(tx, naming.held, reply=title, ids=talk.ids))
    before, text = await kx.get_session(session_id), await lines(kx, session_id)
    [new_id] = await kx.import_lines(text)
    assert renamed(await lines(kx, new_id), new_id, session_id) == text
    after = await kx.get_session(new_id)
    counts = (after.input_tokens, after.output_tokens, after.thinking_tokens, after.cost_micros)
    assert counts == (before.input_tokens, before.output_tokens, before.thinking_tokens, before.cost_micros)
    assert (after.thinking_tokens, after.title_by) == (4, "model")
    assert await talk.database.read(check_invariants) == []


def test_negative_counts_of_a_turn_are_refused() -> None:
    with pytest.raises(InvalidValue, match="counts begin at 0"):
        TurnLine(no=1, branch_no=0, state="finished", purpose="title", begun_at=1, cost_micros=-1)
