"""Search finds all messages that match and no others, whatever is indexed yet and however the index is divided."""

from random import Random

import pytest

from keryx.core.conversations.rules.message import NewMessage, Role, TextPart, text_message
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.search.rules.matching import TokenizedText, matches
from keryx.core.search.rules.parse_query import parse_query
from keryx.core.search.transactions.index_messages import clear_index
from keryx.core.search.views.search import SearchResult
from keryx.core.search.views.search_pages import NEW_FACTS_MAX, PHRASES_MAX, RANKED_MAX
from keryx.errors import InvalidValue
from keryx.store.database import Tx
from tests.conformance.search.searching import find, hits, ids_of, index, problems, say, segment_count, texts
from tests.conformance.talk import Talk

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


async def test_a_message_is_found_before_and_after_it_is_indexed(talk: Talk) -> None:
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
async def test_every_query_finds_the_same_messages_as_a_scan(talk: Talk, seed: int) -> None:
    random = Random(seed)
    sessions = [await talk.session() for _ in range(3)]
    said: dict[int, tuple[int, str, str]] = {}

    async def say_more(count: int) -> None:
        for _ in range(count):
            text = " ".join(random.choice(WORDS) for _ in range(random.randrange(1, 7)))
            role: Role = random.choice(["user", "assistant"])
            # Imported messages are older than their place in the feed, and some have the same time.
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
            if matches(parsed.words, TokenizedText(text))
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


async def test_a_prefix_is_found_far_back_in_a_long_session(talk: Talk) -> None:
    session_id = await talk.session(
        "an exotic word", "no exit", *(f"some text {number}" for number in range(90)), "an expert"
    )
    await index(talk)
    assert await texts(talk, "ex*", session_id=session_id) == ["an expert", "no exit", "an exotic word"]
    assert await texts(talk, "an ex*", session_id=session_id) == ["an expert", "an exotic word"]
    assert await texts(talk, "ex* wor*", session_id=session_id) == ["an exotic word"]
    assert await texts(talk, "exa* OR exo*", session_id=session_id) == ["an exotic word"]
    assert await texts(talk, "exa*", session_id=session_id) == []


async def test_a_token_longer_than_the_index_keeps_is_found_exactly(talk: Talk) -> None:
    await talk.session("a" * 70 + "b", "a" * 70 + "c")
    for _ in range(2):
        assert await texts(talk, "a" * 70 + "b") == ["a" * 70 + "b"]
        assert await texts(talk, f"a* -{'a' * 70}b") == ["a" * 70 + "c"]
        assert len(await texts(talk, "a" * 68 + "*")) == 2
        await index(talk)


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


async def test_an_answer_says_what_was_not_indexed_ranked_or_checked(talk: Talk) -> None:
    session_id = await talk.session("word word word")

    def say_all(tx: Tx) -> list[int]:
        return [
            append_message(tx, session_id, text_message("user", "a word"), person_id=talk.owner.id).message_id
            for _ in range(RANKED_MAX)
        ]

    said = await talk.database.write(say_all)
    waiting = await find(talk, "word", order="best")
    assert waiting.not_indexed == RANKED_MAX + 2 - NEW_FACTS_MAX
    assert (await find(talk, "word")).not_indexed == waiting.not_indexed
    await index(talk, rows_max=2_000)
    whole = await find(talk, "word", order="best", limit=3)
    assert (whole.not_indexed, whole.ranked_among) == (0, RANKED_MAX)
    assert (await find(talk, '"a word"', order="best")).ranked_among == PHRASES_MAX
    assert [hit.message_id for hit in hits(whole)] == said[:-4:-1]
    # No session is closed, and only the rows tell that: one search does not check all candidates.
    nothing = await find(talk, "word is:closed")
    assert (nothing.sessions, nothing.nothing_because, len(nothing.notes)) == ((), (), 1)
    rest = await find(talk, "word is:closed", after=nothing.next)
    assert (rest.sessions, rest.next, rest.notes) == ((), None, ())
