"""A search finds only what the person may see, and filters narrow it further."""

from functools import partial
from typing import Any

from keryx.clock import DAY
from keryx.core.conversations.rules.message import MediaPart, TextPart, ToolCallPart, ToolResultPart
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.transactions.change_session import archive, delete, pin, set_project, tag
from keryx.core.conversations.transactions.manage_project import ProjectPlan, create_project
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.people.tables import people
from keryx.core.turns.transactions.flush_session import give_way
from keryx.store.database import Tx
from tests.conformance.search.searching import find, hits, index, say, texts
from tests.conformance.talk import FAMILY, PHONE, Talk


async def test_a_person_does_not_find_messages_of_other_audiences(talk: Talk) -> None:
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


async def test_a_person_of_many_audiences_finds_the_messages_of_each(talk: Talk) -> None:
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
        set_project(tx, rome, saved.id, person_id=owner)  # type: ignore[union-attr]
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


async def test_a_deleted_session_is_found_only_with_is_deleted(talk: Talk) -> None:
    session_id = await talk.session("a word in the bin")
    await index(talk)
    await talk.database.write(
        lambda tx: delete(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way))
    )
    for _ in range(2):
        assert await texts(talk, "word") == []
        assert await texts(talk, "word is:deleted") == ["a word in the bin"]
        await index(talk)


async def test_an_empty_answer_says_what_hid_the_matches(talk: Talk) -> None:
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
