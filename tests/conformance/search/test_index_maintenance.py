"""The index follows the messages: it is merged, purged, rebuilt and checked."""

from collections.abc import Callable

import psycopg
import pytest

from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.search.rules.index_format import FORMAT
from keryx.core.search.tables.segments import SegmentRow, drop_segment, list_segments
from keryx.core.search.transactions.index_messages import IndexStep, clear_index, index_step
from keryx.core.search.transactions.merge_segments import segments_to_merge
from keryx.core.upkeep.transactions.purge_session import purge_session
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.store.opening import open_database
from keryx.testing.clock import FakeClock
from tests.conformance.search.searching import find, hits, index, problems, say, segment_count, terms, texts
from tests.conformance.talk import Talk


async def test_a_purged_session_leaves_no_word_in_the_index(talk: Talk) -> None:
    kept = await talk.session("a common kept word")
    gone = await talk.session("a common confidential thing")
    alone = await talk.session()
    await index(talk)
    await talk.say(alone, "solitary")
    await index(talk)
    for session_id in (gone, alone):
        await talk.database.write(
            lambda tx, purged=session_id: purge_session(tx, purged, person_id=talk.owner.id)  # type: ignore[misc]
        )
    assert await texts(talk, "common") == ["a common kept word"]
    assert await texts(talk, "confidential OR solitary") == []
    await index(talk)
    left = await terms(talk)
    assert "common" in left
    assert not left & {"confidential", "thing", "solitary", gone, alone}
    assert await texts(talk, "common") == ["a common kept word"]
    assert await problems(talk) == ()
    assert kept in left


async def test_a_purge_waits_for_the_merge_in_progress(talk: Talk) -> None:
    sessions = [await talk.session(f"word{number}") for number in range(14)]
    while not (step := await talk.database.write_index(lambda tx: index_step(tx, rows_max=2))).merged:
        assert step.indexed
    await talk.database.write(lambda tx: purge_session(tx, sessions[0], person_id=talk.owner.id))
    await index(talk, rows_max=2)
    assert "word0" not in await terms(talk)
    assert await texts(talk, "word1") == ["word1"]
    assert await problems(talk) == ()


async def test_the_index_is_rebuilt_with_one_call(talk: Talk) -> None:
    await talk.session("some word", "other word")
    await index(talk)
    before = await terms(talk)
    await talk.database.write_index(clear_index)
    assert await terms(talk) == set()
    assert len(await texts(talk, "word")) == 2
    await index(talk)
    assert await terms(talk) == before
    assert await problems(talk) == ()


async def test_an_index_of_another_format_is_rebuilt(talk: Talk) -> None:
    await talk.session("some word")
    await index(talk)

    def age(tx: Tx) -> None:
        tx.run("search_state.clear")
        tx.run("search_state.begin", format=FORMAT + 1)

    await talk.database.write_index(age)
    assert await texts(talk, "word") == ["some word"]
    assert len(await problems(talk)) == 1
    await index(talk)
    assert await texts(talk, "word") == ["some word"]
    assert await problems(talk) == ()


async def test_a_search_in_one_session_reads_only_segments_with_its_mark(talk: Talk) -> None:
    first, second = await talk.session("some word"), await talk.session("another word")
    await index(talk, rows_max=3)
    await talk.say(first, "the same word")
    await index(talk)
    assert await texts(talk, "word", session_id=first) == ["the same word", "some word"]
    assert await texts(talk, "word", session_id=second) == ["another word"]

    def forget(tx: Tx) -> None:
        known = list_segments(tx)
        tx.run("search_segments.clear")
        for each in known:
            tx.run("search_segments.add", **each._asdict(), marks=b"", merged_up_to=None, finished_at=tx.now)

    await talk.database.write_index(forget)
    assert await texts(talk, "word", session_id=first) == []
    assert any("lacks the mark of a session" in problem for problem in await problems(talk))


async def test_a_damaged_index_is_reported(talk: Talk) -> None:
    session_id = await talk.session("some word")
    await index(talk)
    await talk.say(session_id, "more words")
    await index(talk)

    def lose(tx: Tx) -> None:
        tx.run("search_blocks.drop", segment_id=1)
        drop_segment(tx, 2)

    await talk.database.write_index(lose)
    found = await problems(talk)
    assert "Segment 1 has wrong postings for 'word'." in found
    assert any("is not in the index" in each for each in found)


async def test_indexing_runs_in_bounded_steps_that_yield_control(talk: Talk) -> None:
    session_id = await talk.session(*(f"word{number} text" for number in range(20)))
    yields: list[int] = []

    def step(rows_max: int) -> Callable[[Tx], IndexStep]:
        return lambda tx: index_step(tx, rows_max=rows_max, yield_control=lambda: yields.append(1))

    first = await talk.database.write_index(step(5))
    assert (first.indexed, first.behind, first.merged, first.more) == (5, 16, False, True)
    assert len(yields) >= 5
    await say(talk, session_id, "x" * 150_000)
    await say(talk, session_id, "y" * 150_000)
    sizes = [step.indexed for step in await index(talk)]
    assert sizes[-3:] == [17, 1, 0] or sizes == [17, 1, 0]
    assert await problems(talk) == ()


async def test_merged_segments_hold_all_messages_in_order(talk: Talk) -> None:
    session_id = await talk.session(source=LOCAL_CLI)
    said = [
        await say(talk, session_id, f"word{number % 10} common", at=(number * 37) % 100)
        for number in range(120)
    ]
    await index(talk, rows_max=2)
    result = await find(talk, "common", limit=200)
    expected = sorted(said, key=lambda each: ((said.index(each) * 37) % 100, each), reverse=True)
    assert [hit.message_id for hit in hits(result)] == expected
    assert await segment_count(talk) <= 24
    assert await problems(talk) == ()


async def test_a_merge_of_many_terms_takes_several_steps_and_is_visible_after_the_last(talk: Talk) -> None:
    session_id = await talk.session()
    for number in range(13):
        await say(talk, session_id, " ".join(f"w{number}x{word}" for word in range(4_000)) + " common")
    steps = [await talk.database.write_index(lambda tx: index_step(tx, rows_max=1)) for _ in range(14)]
    while not steps[-1].merged:
        steps.append(await talk.database.write_index(lambda tx: index_step(tx, rows_max=1)))
    before = await segment_count(talk)
    pieces = 0
    while await segment_count(talk) == before:
        assert len(await texts(talk, "common")) == 13
        await talk.database.write_index(index_step)
        pieces += 1
    assert pieces > 1
    await index(talk)
    assert len(await texts(talk, "common")) == 13
    assert await texts(talk, "w3x17 w3x18 -w4x17") != []
    assert await problems(talk) == ()


async def test_the_index_never_passes_a_running_transaction(
    postgres_url: str, clock: FakeClock, ids: Ids
) -> None:
    database = open_database(postgres_url, clock=clock)
    talk = await Talk.begin(database, ids)
    with psycopg.connect(postgres_url) as late:
        late.execute("SELECT pg_current_xact_id()")
        await talk.session("a word")
        (step,) = await index(talk)
        assert (step.indexed, step.behind, step.more) == (0, 2, False)
        assert await texts(talk, "word") == ["a word"]
        late.commit()
    steps = await index(talk)
    assert sum(step.indexed for step in steps) == 2
    assert await texts(talk, "word") == ["a word"]
    assert await problems(talk) == ()
    await database.close()


def segments(*sizes: int) -> list[SegmentRow]:
    return [
        SegmentRow(segment_id=number, born=number, doc_count=size, first_at=0, last_at=0)
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        ([], []),
        ([1] * 9, []),
        ([1] * 10, list(range(8))),
        ([500] * 10, list(range(8))),
        ([4_000] * 17, []),
        ([4_000] * 18, list(range(16))),
        ([30_000] * 4, []),
        ([30_000] * 5, [0, 1]),
        ([60_000] * 40, []),
        ([60_000, 3, *[500] * 12], list(range(2, 10))),
    ],
)
def test_the_oldest_segments_of_a_full_size_class_are_merged(sizes: list[int], merged: list[int]) -> None:
    assert [each.segment_id for each in segments_to_merge(segments(*sizes))] == merged
