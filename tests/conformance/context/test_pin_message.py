"""Pinned messages: per session, facts of the feed, shown and changed by ``/pin``, and never summarised."""

import pytest

from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.core.context.rules.cover import Summary
from keryx.core.context.transactions.cover_messages import cover
from keryx.core.context.transactions.pin_command import COVERED, NO_ANSWER, NOTHING_PINNED, USAGE, pin_message
from keryx.core.context.views.prompt_facts import pinned_seqs
from keryx.core.conversations.rules.command import ParsedCommand
from keryx.core.conversations.rules.message import NewMessage, ToolCallPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.conversations.transactions.branch_session import redo, undo
from keryx.core.conversations.transactions.command_context import CommandContext
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.turns.transactions.flush_session import give_way
from keryx.core.upkeep.transactions.purge_session import purge_session
from keryx.errors import NotFound
from keryx.ids import Ids
from keryx.store.database import Database, Tx
from tests.conformance.talk import Talk

KEY = SessionKey("agent:main:local:dm:cli")
CALL = NewMessage(role="assistant", parts=(ToolCallPart(call_id="c", name="look", arguments={}),))


@pytest.fixture
async def talk(database: Database, ids: Ids) -> Talk:
    return await Talk.begin(database, ids)


async def pin(talk: Talk, session_id: SessionId, seq: int, *, pinned: bool = True) -> bool:
    return await talk.database.write(
        lambda tx: pin_message(tx, session_id, seq, person_id=talk.owner.id, pinned=pinned)
    )


async def pins(talk: Talk, session_id: SessionId) -> set[int]:
    return set(await talk.database.read(lambda tx: pinned_seqs(tx, session_id)))


async def say(talk: Talk, session_id: SessionId, command: str) -> str:
    """Return the reply to a command of the owner."""
    parsed = COMMANDS.parse(command)
    assert isinstance(parsed, ParsedCommand)

    def work(tx: Tx) -> str | None:
        context = CommandContext(
            session_id=session_id,
            key=KEY,
            person=talk.owner,
            source=LOCAL_CLI,
            settings=Settings(),
            ids=talk.ids,
            commands=COMMANDS,
            give_way=give_way,
        )
        return COMMANDS.run(tx, parsed, context=context).reply

    reply = await talk.database.write(work)
    assert reply is not None
    return reply


async def test_a_message_is_pinned_once_and_unpinned_with_facts_in_the_feed(talk: Talk) -> None:
    session_id = await talk.session("Hello", "Hi", "And?", "So.")
    before = await talk.facts(session_id)
    assert [await pin(talk, session_id, seq) for seq in (2, 2, 3)] == [True, False, True]
    assert await pins(talk, session_id) == {2, 3}
    assert [await pin(talk, session_id, 2, pinned=False) for _ in range(2)] == [True, False]
    assert await pins(talk, session_id) == {3}
    assert await talk.facts(session_id) == [*before, *["session.changed"] * 3]


async def test_a_person_pins_only_messages_that_they_can_see(talk: Talk) -> None:
    session_id = await talk.session("Hello", "Hi")
    ben = await talk.stranger()
    for seq in (0, 3, 10**17):
        with pytest.raises(NotFound, match=f"no message {seq} in this conversation"):
            await pin(talk, session_id, seq)
    with pytest.raises(NotFound):
        await talk.database.write(lambda tx: pin_message(tx, session_id, 1, person_id=ben.id))
    assert await pins(talk, session_id) == set()


async def test_a_fork_begins_without_pins_and_may_pin_what_it_inherited(talk: Talk) -> None:
    session_id = await talk.session("Hello", "Hi", "And?", "So.")
    await pin(talk, session_id, 2)
    fork_id = await talk.database.write(
        lambda tx: fork_session(tx, talk.ids, session_id, person=talk.owner, at=2)
    )
    assert await pins(talk, fork_id) == set()
    assert await pin(talk, fork_id, 1)
    await talk.database.write(lambda tx: purge_session(tx, session_id, person_id=talk.owner.id))
    assert await pins(talk, session_id) == set(), "a purge takes pins along"
    assert await say(talk, fork_id, "/pin list") == "1. user: Hello"


async def test_an_undone_message_keeps_its_pin_for_a_redo(talk: Talk) -> None:
    session_id = await talk.session("Hello", "Hi", "And?", "So.")
    await pin(talk, session_id, 4)
    await talk.database.write(
        lambda tx: undo(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way), turns=1)
    )
    assert await say(talk, session_id, "/pin list") == NOTHING_PINNED
    await talk.database.write(
        lambda tx: redo(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way))
    )
    assert await say(talk, session_id, "/pin list") == "4. assistant: So."


async def test_the_command_pins_the_last_answer_or_a_number_and_lists_and_removes(talk: Talk) -> None:
    session_id = await talk.session()
    assert await say(talk, session_id, "/pin") == NO_ANSWER
    await talk.say(session_id, "Hello", "Hi there", "And?")
    await talk.database.write(lambda tx: append_message(tx, session_id, CALL, person_id=talk.owner.id))
    assert (await say(talk, session_id, "/pin")).startswith("Message 2 is pinned:")
    assert await say(talk, session_id, "/pin 2") == "Message 2 is pinned already."
    assert (await say(talk, session_id, "/pin 1")).startswith("Message 1 is pinned:")
    assert await say(talk, session_id, "/pin LIST") == "1. user: Hello\n2. assistant: Hi there"
    assert await say(talk, session_id, "/pin Remove 1") == "Message 1 is no longer pinned."
    assert "/pin list shows" in await say(talk, session_id, "/pin remove 1")
    assert "no message 9" in await say(talk, session_id, "/pin 9")
    for wrong in ("this", "remove", "list 1", "remove all", "1 2", "٣"):
        assert (await say(talk, session_id, f"/pin {wrong}")).endswith(USAGE)
    assert await pins(talk, session_id) == {2}


async def test_pinning_a_covered_message_says_so(talk: Talk) -> None:
    session_id = await talk.session("Hello", "Hi", "And?", "So.")
    summary = Summary(first_seq=1, last_seq=2, text="in short", tokens_before=90, tokens_after=9)
    await talk.database.write(lambda tx: cover(tx, session_id, summary, person_id=talk.owner.id))
    assert (await say(talk, session_id, "/pin 1")).endswith(COVERED)
    assert not (await say(talk, session_id, "/pin")).endswith(COVERED)
    assert await say(talk, session_id, "/pin list") == (
        "1. user: Hello (a summary covers it)\n4. assistant: So."
    )


async def test_of_many_pins_the_newest_are_listed(talk: Talk) -> None:
    session_id = await talk.session(*[f"word {number}" for number in range(1, 24)])
    for seq in range(1, 24):
        await pin(talk, session_id, seq)
    lines = (await say(talk, session_id, "/pin list")).splitlines()
    assert (lines[0], lines[1], lines[-1]) == (
        "3 earlier ones, and:",
        "4. assistant: word 4",
        "23. user: word 23",
    )
