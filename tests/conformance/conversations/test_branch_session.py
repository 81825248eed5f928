"""Undo, redo, retry, edit, switch, fork and compress are views: nothing is lost, and each can be taken back."""

import pytest

from keryx.clock import MINUTE
from keryx.core.context.tables.covers import list_covers
from keryx.core.context.transactions.cover_messages import Covered, CoverRefused, Summary, cover, uncover
from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.tables import branches
from keryx.core.conversations.transactions.branch_session import (
    Branched,
    NothingToRedo,
    NothingToRetry,
    NothingToUndo,
    Rerun,
    edit,
    redo,
    retry,
    switch_branch,
    undo,
)
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.flush_session import give_way
from keryx.errors import InvalidValue, NotFound, SessionBusy
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.testing.clock import FakeClock
from tests.conformance.talk import FAMILY, PHONE, Talk


@pytest.fixture
async def talk(database: Database, ids: Ids) -> Talk:
    return await Talk.begin(database, ids)


async def do_undo(talk: Talk, session_id: SessionId, turns: int = 1) -> Branched | NothingToUndo:
    return await talk.database.write(
        lambda tx: undo(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way), turns=turns)
    )


async def do_redo(talk: Talk, session_id: SessionId) -> Branched | NothingToRedo:
    return await talk.database.write(
        lambda tx: redo(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way))
    )


async def test_undo_takes_back_turns_and_redo_restores_them(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c", "d")
    assert await do_undo(talk, session_id) == Branched(branch_no=1, message_count=2)
    assert await talk.texts(session_id) == ["a", "b"]
    assert await do_redo(talk, session_id) == Branched(branch_no=0, message_count=4)
    assert await talk.texts(session_id) == ["a", "b", "c", "d"]
    assert await do_undo(talk, session_id, 2) == Branched(branch_no=2, message_count=0)
    assert await talk.texts(session_id) == []
    assert (await talk.facts(session_id))[-3:] == ["branch", "branch", "branch"]


async def test_a_message_after_an_undo_continues_from_there(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c", "d")
    await do_undo(talk, session_id)
    await talk.say(session_id, "e", "f")
    assert await talk.texts(session_id) == ["a", "b", "e", "f"]
    await talk.database.write(
        lambda tx: switch_branch(tx, session_id, 0, actor=Actor(person_id=talk.owner.id, give_way=give_way))
    )
    assert await talk.texts(session_id) == ["a", "b", "c", "d"]


async def test_undo_of_too_many_turns_is_refused(talk: Talk) -> None:
    session_id = await talk.session("a", "b")
    assert await do_undo(talk, session_id, 2) == NothingToUndo(turns=1)
    assert await do_redo(talk, session_id) == NothingToRedo()
    assert await talk.texts(session_id) == ["a", "b"]


async def test_undo_finds_the_beginning_of_a_long_turn(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c")
    for number in range(150):
        await talk.append(session_id, "assistant", str(number))
    assert await do_undo(talk, session_id) == Branched(branch_no=1, message_count=2)
    assert await do_redo(talk, session_id) == Branched(branch_no=0, message_count=153)
    assert await do_undo(talk, session_id, 2) == Branched(branch_no=2, message_count=0)


async def test_switching_to_a_missing_branch_is_refused(talk: Talk) -> None:
    session_id = await talk.session("a")
    with pytest.raises(NotFound, match="no branch 3"):
        await talk.database.write(
            lambda tx: switch_branch(
                tx, session_id, 3, actor=Actor(person_id=talk.owner.id, give_way=give_way)
            )
        )


async def test_branching_an_invisible_session_is_refused(talk: Talk) -> None:
    session_id = await talk.session("a", "b")
    stranger = await talk.stranger()
    with pytest.raises(NotFound):
        await talk.database.write(
            lambda tx: undo(tx, session_id, actor=Actor(person_id=stranger.id, give_way=give_way))
        )
    with pytest.raises(NotFound):
        await talk.database.write(lambda tx: fork_session(tx, talk.ids, session_id, person=stranger))


async def test_branching_is_refused_while_a_turn_runs_or_waits(talk: Talk, clock: FakeClock) -> None:
    session_id = await talk.session()
    await talk.ask(session_id, "a", ref="1")
    begun = await talk.turn(session_id)
    with pytest.raises(SessionBusy, match="/stop"):
        await do_undo(talk, session_id)
    clock.advance(MINUTE)
    with pytest.raises(SessionBusy):  # the lease is over, but nobody has cleaned up after the turn
        await do_undo(talk, session_id)
    await talk.database.write(lambda tx: turns.wait(tx, begun.turn_id))
    with pytest.raises(SessionBusy):
        await do_undo(talk, session_id)


async def test_retry_answers_the_last_message_again_once(talk: Talk) -> None:
    session_id = await talk.session(source=PHONE)
    await talk.ask(session_id, "a", ref="1", source=PHONE)
    await talk.answer(session_id, "b")
    rerun = Rerun(ids=talk.ids, source=PHONE)

    async def do_retry() -> Branched:
        outcome = await talk.database.write(
            lambda tx: retry(
                tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way), rerun=rerun
            )
        )
        assert isinstance(outcome, Branched)
        return outcome

    first = await do_retry()
    assert await talk.texts(session_id) == ["a"]
    second = await do_retry()
    assert second.inbox_id == first.inbox_id
    assert second.inbox_id is not None
    await talk.answer(session_id, "c")
    assert await talk.texts(session_id) == ["a", "c"]
    waiting = await talk.database.read(lambda tx: inbox.list_ready(tx, session_id))
    assert waiting == []


async def test_an_undo_cancels_the_retry_that_has_not_begun(talk: Talk) -> None:
    session_id = await talk.session()
    await talk.ask(session_id, "a", ref="1")
    await talk.answer(session_id, "b")
    rerun = Rerun(ids=talk.ids, source=LOCAL_CLI)
    retried = await talk.database.write(
        lambda tx: retry(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way), rerun=rerun)
    )
    assert isinstance(retried, Branched)
    await talk.ask(session_id, "still to come", ref="2")
    await do_undo(talk, session_id)
    assert retried.inbox_id is not None
    item = await talk.database.read(lambda tx: inbox.find_item(tx, retried.inbox_id or 0))
    assert item is not None
    assert (item.fate, item.fate_note) == ("cancelled", "the message was taken back")
    await talk.answer(session_id, "reply")
    assert await talk.texts(session_id) == ["still to come", "reply"]


async def test_a_redo_takes_back_the_retry_that_has_not_begun(talk: Talk) -> None:
    session_id = await talk.session()
    await talk.ask(session_id, "a", ref="1")
    await talk.answer(session_id, "b")
    rerun = Rerun(ids=talk.ids, source=LOCAL_CLI)
    await talk.database.write(
        lambda tx: retry(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way), rerun=rerun)
    )
    await do_redo(talk, session_id)
    assert await talk.texts(session_id) == ["a", "b"]
    assert await talk.database.read(lambda tx: inbox.list_ready(tx, session_id)) == []


async def test_a_retry_runs_before_newer_messages_of_other_people(talk: Talk) -> None:
    session_id = await talk.session(source=FAMILY)
    await talk.ask(session_id, "a", ref="1", source=FAMILY)
    await talk.answer(session_id, "b")
    ben = await talk.stranger()
    await talk.database.write(
        lambda tx: inbox.add_item(
            tx,
            session_id=session_id,
            kind="message",
            source=FAMILY,
            ref="2",
            parts=(TextPart(text="c"),),
            person_id=ben.id,
        )
    )
    rerun = Rerun(ids=talk.ids, source=FAMILY)
    await talk.database.write(
        lambda tx: retry(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way), rerun=rerun)
    )
    await talk.answer(session_id, "b again")
    await talk.answer(session_id, "d")
    assert await talk.texts(session_id) == ["a", "b again", "c", "d"]
    assert await talk.broken() == []


async def test_retry_without_a_rerun_only_takes_the_answer_back(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c", "d")
    outcome = await talk.database.write(
        lambda tx: retry(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way))
    )
    assert outcome == Branched(branch_no=1, message_count=3)
    assert await talk.texts(session_id) == ["a", "b", "c"]


async def test_retry_of_an_empty_session_is_refused(talk: Talk) -> None:
    session_id = await talk.session()
    outcome = await talk.database.write(
        lambda tx: retry(tx, session_id, actor=Actor(person_id=talk.owner.id, give_way=give_way))
    )
    assert outcome == NothingToRetry()


async def test_an_edited_message_is_answered_again(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c", "d")
    rerun = Rerun(ids=talk.ids, source=LOCAL_CLI)
    new = (TextPart(text="A"),)
    outcome = await talk.database.write(
        lambda tx: edit(
            tx, session_id, 1, new, actor=Actor(person_id=talk.owner.id, give_way=give_way), rerun=rerun
        )
    )
    assert outcome.message_count == 1
    assert await talk.texts(session_id) == ["A"]
    await talk.answer(session_id, "B")
    assert await talk.texts(session_id) == ["A", "B"]
    assert await do_redo(talk, session_id) == Branched(branch_no=0, message_count=4)


async def test_an_edited_answer_is_not_run(talk: Talk) -> None:
    session_id = await talk.session("a", "b")
    rerun = Rerun(ids=talk.ids, source=LOCAL_CLI)
    new = (TextPart(text="B"),)
    outcome = await talk.database.write(
        lambda tx: edit(
            tx, session_id, 2, new, actor=Actor(person_id=talk.owner.id, give_way=give_way), rerun=rerun
        )
    )
    assert outcome.inbox_id is None
    assert await talk.texts(session_id) == ["a", "B"]


async def test_only_a_message_of_the_active_branch_can_be_edited(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c", "d")
    await do_undo(talk, session_id)
    with pytest.raises(InvalidValue, match="not on this branch"):
        await talk.database.write(
            lambda tx: edit(
                tx,
                session_id,
                3,
                (TextPart(text="x"),),
                actor=Actor(person_id=talk.owner.id, give_way=give_way),
            )
        )
    assert await talk.texts(session_id) == ["a", "b"]


async def do_fork(talk: Talk, session_id: SessionId, at: int | None = None) -> SessionId:
    return await talk.database.write(
        lambda tx: fork_session(tx, talk.ids, session_id, person=talk.owner, at=at)
    )


async def test_a_fork_continues_without_copying(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c", "d")
    fork_id = await do_fork(talk, session_id, at=2)
    assert await talk.texts(fork_id) == ["a", "b"]
    await talk.say(fork_id, "e", "f")
    assert await talk.texts(fork_id) == ["a", "b", "e", "f"]
    assert await talk.texts(session_id) == ["a", "b", "c", "d"]
    record = await talk.record(fork_id)
    assert (record.message_total, record.last_seq, record.title) == (2, 4, "a")
    [link] = await talk.database.read(lambda tx: branches.list_links(tx, fork_id))
    assert (link.kind, link.from_session_id, link.at_seq) == ("fork", session_id, 2)
    assert (await talk.facts(fork_id))[0] == "session.opened"


async def test_a_fork_can_undo_inherited_messages(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c", "d")
    fork_id = await do_fork(talk, session_id)
    assert await do_undo(talk, fork_id) == Branched(branch_no=1, message_count=2)
    assert await talk.texts(fork_id) == ["a", "b"]
    assert await do_redo(talk, fork_id) == Branched(branch_no=0, message_count=4)


async def test_an_empty_session_and_its_beginning_can_be_forked(talk: Talk) -> None:
    silent = await talk.session()
    assert await talk.texts(await do_fork(talk, silent)) == []
    session_id = await talk.session("a", "b")
    fork_id = await do_fork(talk, session_id, at=0)
    assert await talk.texts(fork_id) == []
    assert (await talk.record(await do_fork(talk, silent))).title == f"Fork of {silent}"


async def test_a_fork_at_a_message_of_another_branch_is_refused(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c", "d")
    await do_undo(talk, session_id)
    for at in (3, 99, -1):
        with pytest.raises(InvalidValue, match="no message shown"):
            await do_fork(talk, session_id, at=at)


async def test_a_member_forks_a_group_session_into_their_own(talk: Talk) -> None:
    session_id = await talk.session("a", "b")
    titled = await talk.database.write(
        lambda tx: fork_session(tx, talk.ids, session_id, person=talk.owner, title="Mine")
    )
    record = await talk.record(titled)
    assert (record.title, record.title_by, record.audience_id) == (
        "Mine",
        "person",
        (await talk.record(session_id)).audience_id,
    )


def summary(first_seq: int = 1, last_seq: int = 2, before: int = 10, after: int = 3) -> Summary:
    return Summary(
        first_seq=first_seq,
        last_seq=last_seq,
        text="in short",
        tokens_before=before,
        tokens_after=after,
        focus="x",
    )


async def test_a_summary_covers_a_range_until_it_is_dropped(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c", "d")
    outcome = await talk.database.write(lambda tx: cover(tx, session_id, summary(), person_id=talk.owner.id))
    assert outcome == Covered(no=1)
    [kept] = await talk.database.read(lambda tx: list_covers(tx, session_id))
    assert (kept.summary, kept.focus, kept.first_seq, kept.last_seq) == ("in short", "x", 1, 2)
    assert await talk.texts(session_id) == ["a", "b", "c", "d"]
    assert await talk.database.write(lambda tx: uncover(tx, session_id, 1, person_id=talk.owner.id))
    assert not await talk.database.write(lambda tx: uncover(tx, session_id, 1, person_id=talk.owner.id))
    assert await talk.database.read(lambda tx: list_covers(tx, session_id)) == []
    assert (await talk.facts(session_id))[-2:] == ["cover", "cover"]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (summary(2, 1), "empty"),
        (summary(before=3, after=3), "not_smaller"),
        (summary(1, 9), "not_on_path"),
        (summary(2, 3), "overlaps"),
    ],
)
async def test_a_summary_that_does_not_fit_is_refused(talk: Talk, wanted: Summary, reason: str) -> None:
    session_id = await talk.session("a", "b", "c", "d")
    await talk.database.write(lambda tx: cover(tx, session_id, summary(), person_id=talk.owner.id))
    outcome = await talk.database.write(lambda tx: cover(tx, session_id, wanted, person_id=talk.owner.id))
    assert isinstance(outcome, CoverRefused)
    assert outcome.reason == reason


async def test_a_cover_holds_in_a_fork_too(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c", "d")
    await talk.database.write(lambda tx: cover(tx, session_id, summary(), person_id=talk.owner.id))
    fork_id = await do_fork(talk, session_id)
    outcome = await talk.database.write(lambda tx: cover(tx, fork_id, summary(2, 3), person_id=talk.owner.id))
    assert outcome == CoverRefused(reason="overlaps")


async def test_only_the_holder_of_the_lease_may_compress_a_session(talk: Talk) -> None:
    session_id = await talk.session()
    await talk.ask(session_id, "a", ref="1")
    await talk.answer(session_id, "b")
    await talk.ask(session_id, "c", ref="2")
    await talk.turn(session_id)
    with pytest.raises(SessionBusy):
        await talk.database.write(lambda tx: cover(tx, session_id, summary(), person_id=talk.owner.id))
    outcome = await talk.database.write(
        lambda tx: cover(tx, session_id, summary(), person_id=talk.owner.id, holder="gateway")
    )
    assert outcome == Covered(no=1)
    assert await talk.database.read(lambda tx: leases.find_live_holder(tx, session_id)) == "gateway"


def test_a_summary_says_something() -> None:
    with pytest.raises(InvalidValue, match="is empty"):
        Summary(first_seq=1, last_seq=2, text=" ", tokens_before=2, tokens_after=1)
