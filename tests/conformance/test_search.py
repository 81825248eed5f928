"""Search finds what was said, and only that, whatever is indexed yet and however the index is cut."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import psycopg
import pytest

from keryx.clock import DAY
from keryx.domain.message import (
    MediaPart,
    NewMessage,
    Part,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    text_message,
)
from keryx.domain.postings import FORMAT, Block
from keryx.domain.search_match import Text, matches
from keryx.domain.search_query import parse_query
from keryx.domain.session import SessionId
from keryx.domain.source import LOCAL_CLI, Source
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Database, Tx
from keryx.store.opening import open_database
from keryx.store.tables import people
from keryx.store.tables import search as tables
from keryx.testing.clock import FakeClock
from keryx.transactions.append_message import append_message
from keryx.transactions.branch_session import fork, undo
from keryx.transactions.change_session import archive, delete, pin, rename, set_project, tag
from keryx.transactions.index_messages import IndexStep, clear_index, index_step
from keryx.transactions.manage_project import ProjectPlan, create_project
from keryx.transactions.merge_segments import segments_to_merge
from keryx.transactions.purge_session import purge_session
from keryx.views.search import PHRASES_MAX, RANKED_MAX, TAIL_MAX, Hit, SearchResult, search
from keryx.views.search_verify import verify_index
from tests.conformance.talk import FAMILY, PHONE, Talk

WORDS = ["alpha", "beta", "gamma", "delta", "数据库", "数据", "C++", "café", "omega", "v1.2"]
QUERIES = [
    "alpha",
    "alpha beta",
    '"alpha beta"',
    '"beta alpha beta"',
    "alpha -beta",
    '-"alpha beta" gamma',
    "-alpha",
    "alpha OR omega",
    "gamma OR -alpha",
    "al*",
    "alpha-be*",
    "o* d*",
    "c++",
    "c",
    "数",
    "数据",
    "数据库",
    "库",
    "cafe",
    "v1.2",
    "nothing",
    "role:user beta",
    "-role:user",
]


@pytest.fixture
async def talk(database: Database, ids: Ids) -> Talk:
    return await Talk.begin(database, ids)


async def say(
    talk: Talk,
    session_id: SessionId,
    text: str | tuple[Part, ...],
    *,
    role: Role = "user",
    at: int | None = None,
    author: str | None = None,
) -> int:
    parts = (TextPart(text=text),) if isinstance(text, str) else text
    message = NewMessage(role=role, parts=parts, created_at=at, author=author)
    appended = await talk.database.write(
        lambda tx: append_message(tx, session_id, message, person_id=talk.owner.id)
    )
    return appended.message_id


async def index(talk: Talk, *, rows_max: int = 500) -> list[IndexStep]:
    """Index everything, and merge what is due."""
    steps: list[IndexStep] = []
    while not steps or steps[-1].more:
        steps.append(await talk.database.write_index(lambda tx: index_step(tx, rows_max=rows_max)))
    return steps


async def find(talk: Talk, text: str, *, person_id: int | None = None, **options: Any) -> SearchResult:
    who = talk.owner.id if person_id is None else person_id
    return await talk.database.read(lambda tx: search(tx, text, person_id=who, **options))


async def texts(talk: Talk, text: str, **options: Any) -> list[str]:
    return [hit.snippet.text for hit in hits(await find(talk, text, **options))]


async def problems(talk: Talk) -> tuple[str, ...]:
    return await talk.database.read(verify_index)


def hits(result: SearchResult) -> list[Hit]:
    return [hit for session in result.sessions for hit in session.hits]


def ids_of(result: SearchResult) -> list[int]:
    """The messages found; hits are grouped, so the order is brought back by time."""
    found = sorted(hits(result), key=lambda hit: (hit.created_at, hit.message_id), reverse=True)
    return [hit.message_id for hit in found if hit.seq]


async def segment_count(talk: Talk) -> int:
    return len(await talk.database.read(tables.list_segments))


async def terms(talk: Talk) -> set[str]:
    """Every term the index holds."""

    def read(tx: Tx) -> set[str]:
        return {
            term
            for segment in tables.list_segments(tx)
            for packed in tables.list_blocks(tx, segment.segment_id, term="", limit=10_000)
            for term in Block(packed.data).terms
        }

    return await talk.database.read(read)  # type: ignore[arg-type]


async def test_a_message_is_found_at_once_and_after_it_was_indexed(talk: Talk) -> None:
    session_id = await talk.session("Where is the hotel?", "At the station.")
    assert await texts(talk, "hotel") == ["Where is the hotel?"]
    (step, *_) = await index(talk)
    assert step.indexed == 3
    assert await texts(talk, "hotel") == ["Where is the hotel?"]
    await say(talk, session_id, "Another hotel")
    assert await texts(talk, "hotel") == ["Another hotel", "Where is the hotel?"]
    assert await problems(talk) == ()


async def test_a_query_without_words_finds_nothing_and_says_why(talk: Talk) -> None:
    await talk.session("word")
    assert (await find(talk, "  ")) == SearchResult()
    assert (await find(talk, "???")).notes


@pytest.mark.parametrize("seed", range(3))
async def test_every_query_finds_what_a_scan_finds(talk: Talk, seed: int) -> None:
    random = Random(seed)
    sessions = [await talk.session() for _ in range(3)]
    said: dict[int, tuple[int, str, str]] = {}

    async def say_more(count: int) -> None:
        for _ in range(count):
            text = " ".join(random.choice(WORDS) for _ in range(random.randrange(1, 7)))
            role: Role = random.choice(["user", "assistant"])
            # Imported messages are older than their place in the feed, and some are of the same instant.
            at = 1_000 * random.randrange(40)
            said[await say(talk, random.choice(sessions), text, role=role, at=at)] = (at, text, role)

    def expected(query: str) -> list[int]:
        parsed = parse_query(query)
        roles = [(each.value, each.negated) for each in parsed.filters]
        return [
            message_id
            for message_id, (_, text, role) in sorted(
                said.items(), key=lambda item: (item[1][0], item[0]), reverse=True
            )
            if matches(parsed.words, Text(text))
            and all((role == value) != negated for value, negated in roles)
        ]

    async def check() -> None:
        for query in QUERIES:
            assert ids_of(await find(talk, query, limit=200)) == expected(query), query
            assert sorted(ids_of(await find(talk, query, limit=200, order="best"))) == sorted(
                expected(query)
            ), query

    await say_more(30)
    await check()
    await index(talk, rows_max=7)
    await check()
    await say_more(30)
    await check()
    steps = await index(talk, rows_max=2)
    assert any(step.merged for step in steps)
    assert await segment_count(talk) <= 12
    await check()
    assert await problems(talk) == ()


async def test_pages_follow_each_other_without_gap_or_repeat(talk: Talk) -> None:
    session_id = await talk.session()
    wanted = [await say(talk, session_id, f"word {number}", at=(number * 7) % 30) for number in range(25)]
    await index(talk, rows_max=6)
    await say(talk, session_id, "word newest", at=10)
    for order in ("newest", "best"):
        found: list[int] = []
        cursor: str | None = None
        pages = 0
        while pages == 0 or cursor is not None:
            result = await find(talk, "word", limit=4, after=cursor, order=order)
            assert sum(session.count for session in result.sessions) <= 4
            found += [hit.message_id for hit in hits(result)]
            cursor = result.next
            pages += 1
        assert pages == 7
        assert len(found) == len(set(found)) == len(wanted) + 1


@pytest.mark.parametrize("cursor", ["", "x", "newest:1", "newest:a.b", "best:1.2", "best:3"])
async def test_a_cursor_of_another_search_is_refused(talk: Talk, cursor: str) -> None:
    with pytest.raises(InvalidValue, match="cursor"):
        await find(talk, "word", after=cursor)


async def test_pages_can_begin_in_the_middle_of_a_large_segment(talk: Talk) -> None:
    session_id = await talk.session()

    def say_all(tx: Tx) -> list[int]:
        return [
            append_message(
                tx,
                session_id,
                NewMessage(role="user", parts=(TextPart(text=f"word w{number}"),), created_at=1_000 + number),
                person_id=talk.owner.id,
            ).message_id
            for number in range(600)
        ]

    said = await talk.database.write(say_all)
    await index(talk, rows_max=1_000)
    newest = await find(talk, "word", limit=50)
    following = await find(talk, "word", limit=50, after=newest.next)
    assert ids_of(newest) == said[:549:-1]
    assert ids_of(following) == said[549:499:-1]
    assert ids_of(await find(talk, "word w3*", limit=200)) == [
        said[number] for number in range(599, -1, -1) if str(number).startswith("3")
    ]


async def test_nobody_finds_what_was_said_to_others(talk: Talk) -> None:
    await talk.session("secret plan", source=PHONE)
    family = await talk.session("family plan", source=FAMILY)
    ben = await talk.stranger()
    record = await talk.record(family)
    await talk.database.write(
        lambda tx: people.join_audience(tx, person_id=ben.id, audience_id=record.audience_id)
    )
    for _ in range(2):
        assert sorted(await texts(talk, "plan")) == ["family plan", "secret plan"]
        assert await texts(talk, "plan", person_id=ben.id) == ["family plan"]
        nothing = await find(talk, "secret", person_id=ben.id)
        assert (nothing.sessions, nothing.nothing_because) == ((), ())
        await index(talk)


async def test_a_person_of_many_audiences_finds_what_was_said_to_each(talk: Talk) -> None:
    ben = await talk.stranger()
    for number in range(20):
        source = Source(platform="telegram", chat_id=f"-{number}", chat_type="group")
        record = await talk.record(await talk.session(f"plan {number}", source=source))
        if number != 3:
            await talk.database.write(
                partial(people.join_audience, person_id=ben.id, audience_id=record.audience_id)
            )
    await index(talk)
    assert len(await texts(talk, "plan", limit=50)) == 20
    assert len(await texts(talk, "plan", limit=50, person_id=ben.id)) == 19
    assert await texts(talk, "plan 7", person_id=ben.id) == ["plan 7"]
    assert await texts(talk, "plan 3") == ["plan 3"]
    assert await texts(talk, "plan 3", person_id=ben.id) == []


async def test_a_search_can_be_narrowed_to_a_session_or_a_source(talk: Talk) -> None:
    one = await talk.session("a word here", source=PHONE)
    other = await talk.session("a word there")
    for _ in range(2):
        assert await texts(talk, "word", session_id=one) == ["a word here"]
        assert await texts(talk, "word", source="local") == ["a word there"]
        assert await texts(talk, "word source:telegram") == ["a word here"]
        assert await texts(talk, f"word in:{other}") == ["a word there"]
        assert await texts(talk, "word", session_id=one, source="local") == []
        await index(talk)


async def test_a_beginning_is_found_far_back_in_a_long_session(talk: Talk) -> None:
    session_id = await talk.session(
        "an exotic word", "no exit", *(f"some text {number}" for number in range(90)), "an expert"
    )
    await index(talk)
    assert await texts(talk, "ex*", session_id=session_id) == ["an expert", "no exit", "an exotic word"]
    assert await texts(talk, "an ex*", session_id=session_id) == ["an expert", "an exotic word"]
    assert await texts(talk, "ex* wor*", session_id=session_id) == ["an exotic word"]
    assert await texts(talk, "exa* OR exo*", session_id=session_id) == ["an exotic word"]
    assert await texts(talk, "exa*", session_id=session_id) == []


async def test_filters_narrow_messages(talk: Talk) -> None:
    session_id = await talk.session()
    await say(talk, session_id, "word one https://example.org", author="Ana Díaz", at=5 * DAY)
    await say(talk, session_id, "word two\n```\ncode\n```", role="assistant", at=15 * DAY)
    call = (ToolCallPart(call_id="1", name="word_count", arguments={"path": "word three"}),)
    await say(talk, session_id, call, role="assistant", at=25 * DAY)
    failed = (ToolResultPart(call_id="1", name="word_count", output={"why": "word four"}, is_error=True),)
    await say(talk, session_id, failed, role="tool", at=35 * DAY)
    picture = (TextPart(text="word five"), MediaPart(media_type="image/png", url="x", name="word.png"))
    await say(talk, session_id, picture, at=45 * DAY)

    async def numbers(query: str) -> list[str]:
        found = await find(talk, query)
        names = ("one", "two", "three", "four", "five")
        return sorted(name for hit in hits(found) for name in names if name in hit.snippet.text)

    for _ in range(2):
        assert await numbers("word from:ana") == ["one"]
        assert await numbers('word from:"diaz ana"') == ["one"]
        assert await numbers("word -from:ana role:user") == ["five"]
        assert await numbers("word role:assistant OR role:tool") == ["four", "three", "two"]
        assert await numbers("word has:link") == ["one"]
        assert await numbers("word has:code") == ["two"]
        assert await numbers("word has:tool") == ["four", "three"]
        assert await numbers("word has:tool -has:error") == ["three"]
        assert await numbers("has:image") == ["five"]
        assert await numbers("word before:1970-01-20") == ["one", "two"]
        assert await numbers("word after:1970-01-20 before:1970-02-01") == ["three"]
        assert await numbers("word -before:1970-02-01") == ["five", "four"]
        assert await numbers("word -source:local") == []
        await index(talk)


async def test_filters_narrow_sessions(talk: Talk) -> None:
    rome, paris = await talk.session("a word in rome"), await talk.session("a word in paris")
    owner = talk.owner.id

    def change(tx: Tx) -> None:
        saved = create_project(tx, ProjectPlan(name="Città Eterna"), person_id=owner)
        set_project(tx, rome, saved.project.id, person_id=owner)  # type: ignore[union-attr]
        tag(tx, rome, "travel", person_id=owner)
        pin(tx, rome, person_id=owner)
        archive(tx, paris, person_id=owner)

    await talk.database.write(change)
    for _ in range(2):
        assert await texts(talk, 'word in:"citta eterna"') == ["a word in rome"]
        assert await texts(talk, "word tag:#Travel") == ["a word in rome"]
        assert await texts(talk, "word -tag:travel") == ["a word in paris"]
        assert await texts(talk, "word is:pinned") == ["a word in rome"]
        assert await texts(talk, "word is:archived") == ["a word in paris"]
        assert await texts(talk, "word is:open is:archived") == ["a word in paris"]
        assert await texts(talk, "word is:closed") == []
        await index(talk)


async def test_what_is_in_the_bin_is_found_only_when_asked_for(talk: Talk) -> None:
    session_id = await talk.session("a word in the bin")
    await index(talk)
    await talk.database.write(lambda tx: delete(tx, session_id, person_id=talk.owner.id))
    for _ in range(2):
        assert await texts(talk, "word") == []
        assert await texts(talk, "word is:deleted") == ["a word in the bin"]
        await index(talk)


async def test_a_session_is_found_by_its_title_tag_name_and_id(talk: Talk, clock: FakeClock) -> None:
    session_id = await talk.session("hello", source=FAMILY)
    owner = talk.owner.id
    await index(talk)
    await talk.database.write(lambda tx: rename(tx, session_id, "Trip to Rome", person_id=owner))
    await talk.database.write(lambda tx: tag(tx, session_id, "travel", person_id=owner))
    for _ in range(2):
        for query in ("rome", "travel", "family", session_id, "source:telegram trip"):
            (found,) = (await find(talk, query)).sessions
            assert (found.session_id, found.title, found.count) == (session_id, "Trip to Rome", 1)
            assert [(hit.seq, hit.role) for hit in found.hits] == [(0, "")]
        assert await texts(talk, "rome role:user") == []
        await index(talk)
    clock.advance(1)
    await talk.database.write(lambda tx: rename(tx, session_id, "Trip to Paris", person_id=owner))
    for _ in range(2):
        assert await texts(talk, "rome") == []
        assert len(await texts(talk, "paris")) == 1
        assert len(await texts(talk, "paris", order="best")) == 1
        await index(talk)


async def test_a_title_cut_from_a_message_is_found_in_the_message_only(talk: Talk) -> None:
    await talk.session("the hotel in Rome")
    for _ in range(2):
        assert [hit.seq for hit in hits(await find(talk, "hotel"))] == [1]
        await index(talk)


async def test_hits_are_grouped_with_their_neighbours(talk: Talk) -> None:
    one = await talk.session("good morning", "a word of mine", "thanks", "bye")
    other = await talk.session("word first", "and then")
    await index(talk)
    result = await find(talk, "word")
    assert [(each.session_id, each.count) for each in result.sessions] == [(other, 1), (one, 1)]
    (hit,) = result.sessions[1].hits
    assert (hit.seq, hit.role, hit.on_active_branch) == (2, "assistant", True)
    assert [(each.seq, each.role, each.text) for each in hit.before] == [(1, "user", "good morning")]
    assert [each.text for each in hit.after] == ["thanks"]
    (first,) = result.sessions[0].hits
    assert (first.before, [each.text for each in first.after]) == ((), ["and then"])
    (wide,) = hits(await find(talk, "mine", neighbours=9))
    assert [each.text for each in wide.after] == ["thanks", "bye"]
    (alone,) = hits(await find(talk, "mine", neighbours=0))
    assert (alone.before, alone.after) == ((), ())


async def test_what_was_undone_is_still_found_and_marked(talk: Talk) -> None:
    session_id = await talk.session("first", "answer", "undone word", "gone answer")
    await talk.database.write(lambda tx: undo(tx, session_id, person_id=talk.owner.id))
    await talk.say(session_id, "kept word", "kept answer", "last", "end")
    await index(talk)
    (kept, undone) = hits(await find(talk, "word"))
    assert (undone.snippet.text, undone.on_active_branch) == ("undone word", False)
    assert ([each.text for each in undone.before], [each.text for each in undone.after]) == (
        ["answer"],
        ["kept word"],
    )
    assert (kept.on_active_branch, [each.text for each in kept.before]) == (True, ["answer"])
    (answer,) = hits(await find(talk, '"answer" -kept -gone'))
    assert (answer.on_active_branch, [each.text for each in answer.after]) == (True, ["kept word"])
    (last,) = hits(await find(talk, "end"))
    assert ([each.text for each in last.before], last.after) == (["last"], ())


async def test_a_forks_first_message_follows_what_it_continues(talk: Talk) -> None:
    session_id = await talk.session("first", "answer", "more", "end")
    fork_id = await talk.database.write(lambda tx: fork(tx, talk.ids, session_id, person=talk.owner, at=2))
    await talk.say(fork_id, "forked word", "ok")
    (hit,) = hits(await find(talk, "forked"))
    assert [each.text for each in hit.before] == ["answer"]
    assert [each.text for each in hit.after] == ["ok"]


@pytest.mark.parametrize(
    ("query", "text", "snippet"),
    [
        ("word", "a Word, there", "a [Word], there"),
        ('"two words"', "one two\nwords two", "one [two] [words] two"),
        ("数据库", "新数据库系统", "新[数据库]系统"),
        ("C++", "in C++ now", "in [C]++ now"),
        ("wo* -x", "no words", "no [words]"),
        ("deep", "x " * 100 + "a b c d e f deep" + " y" * 100, "…a b c d e f [deep]" + " y" * 72 + "…"),
        ("桂", "林" * 100 + "桂" + "x" * 3, "…" + "林" * 24 + "[桂]xxx"),
        ("has:code", "```\nx```", "``` x```"),
        ("cafe", "un cafe\u0301 noir", "un [café] noir"),
    ],
)
async def test_snippets_show_what_was_found(talk: Talk, query: str, text: str, snippet: str) -> None:
    await talk.session(text)
    (hit,) = hits(await find(talk, query))
    shown = hit.snippet.text
    for start, end in reversed(hit.snippet.highlights):
        shown = f"{shown[:start]}[{shown[start:end]}]{shown[end:]}"
    assert shown == snippet


async def test_the_best_match_comes_first_and_the_newest_among_equals(talk: Talk) -> None:
    session_id = await talk.session()
    once = await say(talk, session_id, "a word among many others that are not it at all", at=1)
    equal = await say(talk, session_id, "a word among many others that are not it at all", at=2)
    often = await say(talk, session_id, "word word word", at=0)
    rare = await say(talk, session_id, "exotic word word", at=0)
    for rows_max in (None, 1, 500):
        if rows_max is not None:
            await talk.database.write_index(clear_index)
            await index(talk, rows_max=rows_max)
        best = await find(talk, "word", order="best")
        assert [hit.message_id for hit in hits(best)] == [often, rare, equal, once]
        weighed = await find(talk, "word OR exotic", order="best")
        assert next(hit.message_id for hit in hits(weighed)) == rare
        prefixed = await find(talk, "wor* exo*", order="best")
        assert [hit.message_id for hit in hits(prefixed)] == [rare]
        phrased = await find(talk, '"word word"', order="best")
        assert [hit.message_id for hit in hits(phrased)] == [often, rare]
        assert best.ranked_among is None


async def test_an_answer_says_what_it_could_not_read_rank_and_judge(talk: Talk) -> None:
    session_id = await talk.session("word word word")

    def say_all(tx: Tx) -> list[int]:
        return [
            append_message(tx, session_id, text_message("user", "a word"), person_id=talk.owner.id).message_id
            for _ in range(RANKED_MAX)
        ]

    said = await talk.database.write(say_all)
    waiting = await find(talk, "word", order="best")
    assert waiting.not_indexed == RANKED_MAX + 2 - TAIL_MAX
    assert (await find(talk, "word")).not_indexed == waiting.not_indexed
    await index(talk, rows_max=2_000)
    whole = await find(talk, "word", order="best", limit=3)
    assert (whole.not_indexed, whole.ranked_among) == (0, RANKED_MAX)
    assert (await find(talk, '"a word"', order="best")).ranked_among == PHRASES_MAX
    assert [hit.message_id for hit in hits(whole)] == said[:-4:-1]
    # No session is closed, which only the rows know: the search does not look through everything at once.
    nothing = await find(talk, "word is:closed")
    assert (nothing.sessions, nothing.nothing_because, len(nothing.notes)) == ((), (), 1)
    rest = await find(talk, "word is:closed", after=nothing.next)
    assert (rest.sessions, rest.next, rest.notes) == ((), None, ())


async def test_nothing_found_says_what_hid_it(talk: Talk) -> None:
    session_id = await talk.session("the word", source=PHONE)
    elsewhere = await talk.session("other")

    async def because(query: str, **options: Any) -> tuple[str, ...]:
        return (await find(talk, query, **options)).nothing_because

    assert await because("word source:local") == ("1 match is hidden by source:local.",)
    assert await because("word", session_id=elsewhere) == (
        "1 match is hidden by searching this session only.",
    )
    assert await because("word", source="local") == ("1 match is hidden by searching local only.",)
    assert await because("word role:tool source:local") == ("1 match is hidden by all of these together.",)
    assert await because("word role:tool", session_id=session_id) == ("1 match is hidden by role:tool.",)
    assert await because("absent source:local") == ()
    assert await because("role:tool") == ()
    for number in range(2):
        await say(talk, session_id, f"word {number}")
    assert await because("word role:tool") == ("3 matches are hidden by role:tool.",)
    for number in range(20):
        await say(talk, session_id, f"word {number}")
    assert await because("word role:tool") == ("20 or more matches are hidden by role:tool.",)


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


async def test_a_purge_waits_for_the_merge_under_way(talk: Talk) -> None:
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


async def test_an_index_of_another_format_is_thrown_away(talk: Talk) -> None:
    await talk.session("some word")
    await index(talk)

    def age(tx: Tx) -> None:
        tx.run("search.clear_state")
        tx.run("search.begin", format=FORMAT + 1)

    await talk.database.write_index(age)
    assert await texts(talk, "word") == ["some word"]
    assert len(await problems(talk)) == 1
    await index(talk)
    assert await texts(talk, "word") == ["some word"]
    assert await problems(talk) == ()


async def test_a_session_is_looked_for_only_where_its_mark_is(talk: Talk) -> None:
    first, second = await talk.session("some word"), await talk.session("another word")
    await index(talk, rows_max=3)
    await talk.say(first, "the same word")
    await index(talk)
    assert await texts(talk, "word", session_id=first) == ["the same word", "some word"]
    assert await texts(talk, "word", session_id=second) == ["another word"]

    def forget(tx: Tx) -> None:
        known = tables.list_segments(tx)
        tx.run("search.clear_segments")
        for each in known:
            tx.run("search.add_segment", **each._asdict(), marks=b"", merged_up_to=None, finished_at=tx.now)

    await talk.database.write_index(forget)
    assert await texts(talk, "word", session_id=first) == []
    assert any("does not say which sessions" in problem for problem in await problems(talk))


async def test_a_broken_index_is_noticed(talk: Talk) -> None:
    session_id = await talk.session("some word")
    await index(talk)
    await talk.say(session_id, "more words")
    await index(talk)

    def lose(tx: Tx) -> None:
        tx.run("search.drop_blocks", segment_id=1)
        tables.drop_segment(tx, 2)

    await talk.database.write_index(lose)
    found = await problems(talk)
    assert "Segment 1 is wrong about 'word'." in found
    assert any("is not in the index" in each for each in found)


async def test_work_is_done_in_bounded_steps_that_breathe(talk: Talk) -> None:
    session_id = await talk.session(*(f"word{number} text" for number in range(20)))
    breaths: list[int] = []

    def step(rows_max: int) -> Callable[[Tx], IndexStep]:
        return lambda tx: index_step(tx, rows_max=rows_max, breathe=lambda: breaths.append(1))

    first = await talk.database.write_index(step(5))
    assert (first.indexed, first.behind, first.merged, first.more) == (5, 16, False, True)
    assert len(breaths) >= 5
    await say(talk, session_id, "x" * 150_000)
    await say(talk, session_id, "y" * 150_000)
    sizes = [step.indexed for step in await index(talk)]
    assert sizes[-3:] == [17, 1, 0] or sizes == [17, 1, 0]
    assert await problems(talk) == ()


async def test_a_term_longer_than_the_index_keeps_is_found_exactly(talk: Talk) -> None:
    await talk.session("a" * 70 + "b", "a" * 70 + "c")
    for _ in range(2):
        assert await texts(talk, "a" * 70 + "b") == ["a" * 70 + "b"]
        assert await texts(talk, f"a* -{'a' * 70}b") == ["a" * 70 + "c"]
        assert len(await texts(talk, "a" * 68 + "*")) == 2
        await index(talk)


async def test_merged_segments_hold_what_was_said_in_order(talk: Talk) -> None:
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


async def test_a_merge_of_many_terms_is_done_in_pieces_and_is_read_whole_at_its_end(talk: Talk) -> None:
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


async def test_the_index_never_passes_a_transaction_that_still_runs(
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


def segments(*sizes: int) -> list[tables.SegmentRow]:
    return [
        tables.SegmentRow(segment_id=number, born=number, doc_count=size, first_at=0, last_at=0)
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
def test_the_oldest_segments_of_a_full_class_are_merged(sizes: list[int], merged: list[int]) -> None:
    assert [each.segment_id for each in segments_to_merge(segments(*sizes))] == merged
