"""Hits are shown by session, with snippets and neighbours; sessions are found by their cards."""

import pytest

from keryx.core.conversations.transactions.branch_session import undo
from keryx.core.conversations.transactions.change_session import rename, tag
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.turns.transactions.flush_session import give_way
from keryx.testing.clock import FakeClock
from tests.conformance.search.searching import find, hits, index, texts
from tests.conformance.talk import FAMILY, Talk


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


async def test_a_title_taken_from_a_message_is_found_only_in_the_message(talk: Talk) -> None:
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


async def test_undone_messages_are_still_found_and_marked(talk: Talk) -> None:
    session_id = await talk.session("first", "answer", "undone word", "gone answer")
    await talk.database.write(
        lambda tx: undo(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way))
    )
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


async def test_the_first_message_of_a_fork_follows_the_message_it_continues(talk: Talk) -> None:
    session_id = await talk.session("first", "answer", "more", "end")
    fork_id = await talk.database.write(
        lambda tx: fork_session(tx, talk.ids, session_id, person=talk.owner, at=2)
    )
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
async def test_snippets_highlight_the_matching_words(talk: Talk, query: str, text: str, snippet: str) -> None:
    await talk.session(text)
    (hit,) = hits(await find(talk, query))
    shown = hit.snippet.text
    for start, end in reversed(hit.snippet.highlights):
        shown = f"{shown[:start]}[{shown[start:end]}]{shown[end:]}"
    assert shown == snippet
