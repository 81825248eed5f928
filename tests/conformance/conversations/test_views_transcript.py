"""A transcript is read from its end, across branches and forks, and as a model reads it."""

from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keryx.core.context.rules.call_pairs import NO_RESULT
from keryx.core.context.rules.cover import Cover, covers_on
from keryx.core.context.tables.covers import list_covers
from keryx.core.context.transactions.cover_messages import Covered, Summary, cover
from keryx.core.conversations.rules.archive import MessageLine
from keryx.core.conversations.rules.message import (
    MediaPart,
    NewMessage,
    ThinkingPart,
    ToolCallPart,
    UnknownPart,
)
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import branches, imported
from keryx.core.conversations.transactions import branch_session
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.conversations.views.transcript import conversation, list_transcript, model_messages, versions
from keryx.core.media import tables as blobs
from keryx.core.media.views import CONTENT_BYTES_MAX
from keryx.core.turns.transactions.flush_session import give_way
from keryx.errors import InvalidValue, NotFound
from keryx.ids import Ids
from keryx.store.database import Database, ReadTx, Tx
from tests.conformance.talk import Talk, shown_messages

pytestmark = pytest.mark.anyio


@pytest.fixture
async def talk(database: Database, ids: Ids) -> Talk:
    return await Talk.begin(database, ids)


async def read(talk: Talk, session_id: str, *, last: int | None = 50, before: int | None = None) -> list[str]:
    messages = await talk.database.read(
        lambda tx: list_transcript(tx, session_id, person_id=talk.owner.id, last=last, before=before)
    )
    return [message.text for message in messages]


async def branchy(talk: Talk) -> tuple[SessionId, SessionId]:
    """A session that was undone and went on, and a fork of it that was undone into what it inherited."""
    first = await talk.session("a", "b", "c", "d")
    await talk.database.write(
        lambda tx: branch_session.undo(tx, first, actor=Actor(person_id=talk.owner.id, give_way=give_way))
    )
    await talk.say(first, "C", "D")
    fork = await talk.database.write(lambda tx: fork_session(tx, talk.ids, first, person=talk.owner, at=5))
    await talk.say(fork, "e", "f")
    return first, fork


async def test_the_last_messages_come_oldest_first(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c")
    assert await read(talk, session_id, last=2) == ["b", "c"]
    assert await read(talk, session_id, last=9) == ["a", "b", "c"]
    assert await read(talk, session_id, last=None) == ["a", "b", "c"]


async def test_before_pages_back_to_the_beginning(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c", "d", "e")
    assert await read(talk, session_id, last=2, before=4) == ["b", "c"]
    assert await read(talk, session_id, last=2, before=2) == ["a"]
    assert await read(talk, session_id, last=2, before=1) == []
    assert await read(talk, session_id, last=None, before=3) == ["a", "b"]


async def test_pages_of_any_size_cross_branches_and_forks(talk: Talk) -> None:
    for session_id, whole in zip(
        await branchy(talk), (["a", "b", "C", "D"], ["a", "b", "C", "e", "f"]), strict=True
    ):
        assert await read(talk, session_id, last=None) == whole
        for size in range(1, 7):
            found: list[str] = []
            before: int | None = None
            while True:
                page = await talk.database.read(
                    lambda tx, s=session_id, n=size, b=before: list_transcript(  # type: ignore[misc]
                        tx, s, person_id=talk.owner.id, last=n, before=b
                    )
                )
                if not page:
                    break
                found = [message.text for message in page] + found
                before = page[0].seq
            assert found == whole


async def test_reading_an_invisible_session_is_refused(talk: Talk) -> None:
    session_id = await talk.session("a")
    stranger = await talk.stranger()
    for reading in (list_transcript, conversation, versions):
        with pytest.raises(NotFound):
            await talk.database.read(lambda tx, r=reading: r(tx, session_id, person_id=stranger.id))  # type: ignore[misc]


async def test_a_limit_below_one_is_refused(talk: Talk) -> None:
    session_id = await talk.session("a")
    with pytest.raises(InvalidValue, match="the last 0 messages"):
        await read(talk, session_id, last=0)


async def test_a_damaged_row_hides_no_other(talk: Talk) -> None:
    session_id = await talk.session("a", "b")

    def tear(tx: Tx) -> None:
        line = MessageLine(branch_no=0, seq=3, role="user", body='["torn', created_at=0)
        imported.add_messages(tx, session_id, [line], turn_ids={})

    await talk.database.write(tear)
    messages = await talk.database.read(lambda tx: list_transcript(tx, session_id, person_id=talk.owner.id))
    assert [message.text for message in messages] == ["a", "b", ""]
    assert messages[2].parts == (UnknownPart(raw={"torn": '["torn'}),)


async def test_a_conversation_is_in_chat_format(talk: Talk) -> None:
    session_id = await talk.session("Where?", "Here.")
    chat = await talk.database.read(lambda tx: conversation(tx, session_id, person_id=talk.owner.id))
    assert chat == [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Here."}]


async def test_a_conversation_in_chat_format_is_valid_for_a_provider(talk: Talk) -> None:
    session_id = await talk.session("Look.")
    sizes = {"aa" * 32: 4, "bb" * 32: CONTENT_BYTES_MAX - 1, "cc" * 32: 2}

    def keep(tx: Tx) -> None:
        for digest, size in sizes.items():
            blobs.add_blob(tx, hash=digest, media_type="image/png", size_bytes=size, data=b"x" * size)

    await talk.database.write(keep)
    images = tuple(MediaPart(media_type="image/png", blob=digest) for digest in reversed(sizes))
    thought = (ThinkingPart(text="hm"), ToolCallPart(call_id="c", name="look", arguments={}))
    shown = NewMessage(role="user", parts=images)
    said = [shown, NewMessage(role="assistant", parts=thought), shown]

    def say(tx: Tx) -> None:
        for message in said:
            append_message(tx, session_id, message, person_id=talk.owner.id)

    await talk.database.write(say)
    chat = await talk.database.read(lambda tx: conversation(tx, session_id, person_id=talk.owner.id))
    assert [each["role"] for each in chat] == ["user", "user", "assistant", "tool", "user"]
    assert chat[2]["reasoning_content"] == "hm"
    assert chat[3] == {"role": "tool", "tool_call_id": "c", "content": NO_RESULT}
    content = cast("list[dict[str, object]]", chat[4]["content"])
    assert [part["type"] for part in content] == ["image_url", "text", "image_url"]


async def test_a_summary_replaces_the_messages_it_covers(talk: Talk) -> None:
    first, fork = await branchy(talk)
    summary = Summary(first_seq=1, last_seq=2, text="in short", tokens_before=9, tokens_after=1)
    covered = await talk.database.write(lambda tx: cover(tx, first, summary, person_id=talk.owner.id))
    assert isinstance(covered, Covered)
    for session_id, rest in ((first, ["C", "D"]), (fork, ["C", "e", "f"])):
        chat = await talk.database.read(lambda tx, s=session_id: conversation(tx, s, person_id=talk.owner.id))  # type: ignore[misc]
        assert chat[0] == {"role": "user", "content": "Summary of the conversation so far:\nin short"}
        assert [message["content"] for message in chat[1:]] == rest
        assert await read(talk, session_id, last=None) == ["a", "b", *rest]


async def test_versions_are_returned_by_the_message_before_them(talk: Talk) -> None:
    first, _ = await branchy(talk)
    found = await talk.database.read(lambda tx: versions(tx, first, person_id=talk.owner.id))
    assert {seq: siblings.label for seq, siblings in found.items()} == {2: "2/2"}


ACTS = st.tuples(
    st.sampled_from(["say", "undo", "redo", "fork", "cover"]), st.integers(0, 9), st.integers(0, 9)
)


@given(st.lists(ACTS, min_size=1, max_size=8), st.integers(1, 10))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_both_readings_agree_with_the_rules_after_any_changes(
    talk: Talk, acts: list[tuple[str, int, int]], last: int
) -> None:
    session_id = await talk.session("a", "b")
    for act in acts:
        session_id = await _do(talk, session_id, act)
    shown, listed, viewed, expected = await talk.database.read(
        lambda tx: (
            shown_messages(tx, session_id),
            list_transcript(tx, session_id, person_id=talk.owner.id, last=None),
            model_messages(tx, session_id, person_id=talk.owner.id),
            _expected_view(tx, session_id),
        )
    )
    assert listed == shown
    assert viewed == expected
    assert await read(talk, session_id, last=last) == [message.text for message in shown[-last:]]


def _expected_view(tx: ReadTx, session_id: str) -> list[object]:
    shown = shown_messages(tx, session_id)
    known = branches.list_branches(tx, session_id)
    session_ids = {session_id, *(branch.session_id for branch in known)}
    covers: list[Cover] = [each for one in session_ids for each in list_covers(tx, one)]
    row = tx.row("transcript.find_head", session_id=session_id, person_id=1)
    assert row is not None
    viewed: list[object] = []
    chosen = covers_on(covers, known, session_id=session_id, no=row[0])
    for message in shown:
        over = (each for each in chosen if each.first_seq <= message.seq <= each.last_seq)
        one = next(over, message)
        if one not in viewed:
            viewed.append(one)
    return viewed


async def _do(talk: Talk, session_id: SessionId, what: tuple[str, int, int]) -> SessionId:
    act, one, other = what
    who = talk.owner.id
    shown = await talk.database.read(lambda tx: [message.seq for message in shown_messages(tx, session_id)])
    if act == "say":
        await talk.say(session_id, "more", "and more")
    elif act == "undo":
        await talk.database.write(
            lambda tx: branch_session.undo(tx, session_id, actor=Actor(person_id=who, give_way=give_way))
        )
    elif act == "redo":
        await talk.database.write(
            lambda tx: branch_session.redo(tx, session_id, actor=Actor(person_id=who, give_way=give_way))
        )
    elif act == "fork":
        at = [0, *shown][one % (len(shown) + 1)]
        return await talk.database.write(
            lambda tx: fork_session(tx, talk.ids, session_id, person=talk.owner, at=at)
        )
    elif shown:
        first, last = sorted(shown[number % len(shown)] for number in (one, other))
        summary = Summary(first_seq=first, last_seq=last, text="short", tokens_before=9, tokens_after=1)
        await talk.database.write(lambda tx: cover(tx, session_id, summary, person_id=who))
    return session_id
