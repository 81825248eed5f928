"""A purge deletes one session for good, and no message that another session shows."""

import random
from functools import partial

import pytest

from keryx.clock import DAY
from keryx.core.accounts import tables as connector_leases
from keryx.core.context.tables import memories
from keryx.core.context.tables.covers import list_covers
from keryx.core.context.transactions.cover_messages import Summary, cover
from keryx.core.context.transactions.manage_memory import forget, remember
from keryx.core.conversations.rules.event import START
from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.tables import branches, feed, sessions
from keryx.core.conversations.transactions.branch_session import edit, redo, retry, switch_branch, undo
from keryx.core.conversations.transactions.change_session import (
    close,
    delete,
    mark_read,
    pin,
    restore,
    save_draft,
    tag,
)
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import outbox
from keryx.core.media import tables as blobs
from keryx.core.media.tables import Blob
from keryx.core.media.transactions import collect_blobs, keep_blob
from keryx.core.people.tables import people
from keryx.core.processes.transactions.record_process import NewProcess, record_end, record_started
from keryx.core.turns.tables import leases
from keryx.core.turns.transactions.flush_session import give_way
from keryx.core.upkeep.transactions.purge_session import (
    BinEmptied,
    Pruned,
    Purged,
    empty_bin,
    prune,
    purge_session,
)
from keryx.errors import InvalidValue, NotAllowed, NotFound, SessionBusy
from keryx.ids import Ids
from keryx.store.database import Database, ReadTx, Tx
from keryx.testing.clock import FakeClock
from tests.conformance.talk import FAMILY, PHONE, Talk, shown_messages


@pytest.fixture
async def talk(database: Database, ids: Ids) -> Talk:
    return await Talk.begin(database, ids)


async def do_purge(talk: Talk, session_id: SessionId) -> Purged:
    return await talk.database.write(lambda tx: purge_session(tx, session_id, person_id=talk.owner.id))


async def do_fork(talk: Talk, session_id: SessionId, at: int | None = None) -> SessionId:
    return await talk.database.write(
        lambda tx: fork_session(tx, talk.ids, session_id, person=talk.owner, at=at)
    )


async def facts_of(talk: Talk) -> list[tuple[str, str | None]]:
    events = await talk.database.read(
        lambda tx: feed.list_after(tx, after=START, person_id=talk.owner.id, limit=1_000)
    )
    return [(event.kind, event.session_id) for event in events]


async def test_a_purge_deletes_all_rows_of_a_session(talk: Talk, clock: FakeClock) -> None:
    session_id = await talk.session(key="agent:main:local:dm:cli")
    by = talk.owner.id
    await talk.ask(session_id, "a", ref="1", source=PHONE)
    await talk.answer(session_id, "b")
    memory_id = await talk.database.write(lambda tx: remember(tx, session_id, "fig", person_id=by).memory_id)

    def use(tx: Tx) -> None:
        tag(tx, session_id, "x", person_id=by)
        save_draft(tx, session_id, "d", person_id=by, revision=0)
        mark_read(tx, session_id, person_id=by, seq=1)
        keep_blob(tx, session_id, Blob("a" * 64, "text/plain", 1, b"x", 0))
        cover(
            tx,
            session_id,
            Summary(first_seq=1, last_seq=2, text="s", tokens_before=2, tokens_after=1),
            person_id=by,
        )
        undo(tx, session_id, actor=Actor(person_id=by, give_way=give_way))

    await talk.database.write(use)
    other_id = await talk.session("stays")
    assert await do_purge(talk, session_id) == Purged(session_id=session_id, messages=2, copied=0)
    assert await talk.database.read(lambda tx: sessions.find_session(tx, session_id)) is None
    assert await talk.texts(other_id) == ["stays"]
    facts = await facts_of(talk)
    assert facts[-1] == ("session.purged", None)
    assert session_id not in {told for _, told in facts}
    with pytest.raises(NotFound):
        await do_purge(talk, session_id)
    clock.advance(DAY)
    assert await talk.database.write(collect_blobs) == ["a" * 64]
    # The memory stays; the event of forgetting it goes to the person.
    assert await talk.database.write(lambda tx: forget(tx, memory_id, person_id=by))
    kept = await talk.database.read(lambda tx: memories.get_memory(tx, memory_id, person_id=by))
    assert (kept.session_id, kept.seq) == (None, None)


async def test_the_indexer_learns_which_session_was_purged(talk: Talk) -> None:
    session_id = await talk.session("a")
    before = await talk.database.read(feed.end)
    await do_purge(talk, session_id)
    told = await talk.database.read(
        lambda tx: feed.list_of_session(tx, session_id=session_id, after_number=-1, limit=10)
    )
    assert [(event.kind, event.number) for event in told] == [("session.purged", 0)]
    assert told[0].position > before


async def test_a_purged_session_can_be_imported_and_purged_again(talk: Talk) -> None:
    session_id = await talk.session("a")
    audience_id = (await talk.record(session_id)).audience_id
    await do_purge(talk, session_id)

    def bring_back(tx: Tx) -> None:
        sessions.add_session(
            tx, id=session_id, source=LOCAL_CLI, owner_id=talk.owner.id, audience_id=audience_id
        )
        feed.add_event(tx, session_id, "session.opened")

    await talk.database.write(bring_back)
    await talk.say(session_id, "b")
    assert await talk.texts(session_id) == ["b"]
    assert (await do_purge(talk, session_id)).messages == 1


async def test_a_fork_keeps_its_messages_of_a_purged_session(talk: Talk) -> None:
    session_id = await talk.session("a", "b", "c", "d")
    by = talk.owner.id
    summary = Summary(first_seq=1, last_seq=2, text="in short", tokens_before=9, tokens_after=1)
    await talk.database.write(lambda tx: cover(tx, session_id, summary, person_id=by))
    await talk.database.write(lambda tx: keep_blob(tx, session_id, Blob("a" * 64, "text/plain", 1, b"x", 0)))
    fork_id = await do_fork(talk, session_id, at=3)
    await talk.say(fork_id, "e", "f")
    await talk.database.write(lambda tx: undo(tx, fork_id, actor=Actor(person_id=by, give_way=give_way)))
    await talk.say(fork_id, "g")
    assert await talk.texts(fork_id) == ["a", "b", "g"]
    assert (await do_purge(talk, session_id)).copied == 3
    assert await talk.texts(fork_id) == ["a", "b", "g"]
    await talk.database.write(lambda tx: redo(tx, fork_id, actor=Actor(person_id=by, give_way=give_way)))
    assert await talk.texts(fork_id) == ["a", "b", "c", "e", "f"]
    [kept] = await talk.database.read(lambda tx: list_covers(tx, fork_id))
    assert (kept.summary, kept.branch_no, kept.first_seq, kept.last_seq) == ("in short", 0, 1, 2)
    assert (await talk.facts(fork_id)).count("message") == 6
    assert await talk.database.read(lambda tx: branches.list_links(tx, fork_id)) == []
    assert await talk.database.write(lambda tx: blobs.collect(tx, before=tx.now, limit=9)) == []


async def test_the_middle_of_a_chain_of_forks_can_be_purged(talk: Talk) -> None:
    first = await talk.session("a", "b")
    second = await do_fork(talk, first)
    await talk.say(second, "c", "d")
    third = await do_fork(talk, second)
    await talk.say(third, "e", "f")
    by = talk.owner.id
    # One branch of the third continues from a message of the second, another from the first.
    await talk.database.write(
        lambda tx: undo(tx, third, actor=Actor(person_id=by, give_way=give_way), turns=1)
    )
    await talk.say(third, "g")
    await talk.database.write(
        lambda tx: undo(tx, third, actor=Actor(person_id=by, give_way=give_way), turns=2)
    )
    await talk.say(third, "h")

    async def every_branch() -> list[list[str]]:
        shown = []
        for no in range((await talk.record(third)).last_branch_no + 1):
            await talk.database.write(
                partial(switch_branch, session_id=third, no=no, actor=Actor(person_id=by, give_way=give_way))
            )
            shown.append(await talk.texts(third))
        return shown

    before = await every_branch()
    assert before == [["a", "b", "c", "d", "e", "f"], ["a", "b", "c", "d", "g"], ["a", "b", "h"]]
    await do_purge(talk, second)
    assert await every_branch() == before
    await do_purge(talk, first)
    assert await every_branch() == before
    assert (await talk.record(third)).message_total == 8


async def test_a_branch_into_a_purged_grandparent_continues_from_its_heir(talk: Talk) -> None:
    first = await talk.session("a", "b", "c", "d")
    second = await do_fork(talk, first)
    await talk.say(second, "e", "f")
    third = await do_fork(talk, second)
    by = talk.owner.id
    await talk.database.write(
        lambda tx: undo(tx, third, actor=Actor(person_id=by, give_way=give_way), turns=2)
    )
    await talk.say(third, "x")
    assert await talk.texts(third) == ["a", "b", "x"]
    await do_purge(talk, first)
    assert await talk.texts(third) == ["a", "b", "x"]
    assert await talk.texts(second) == ["a", "b", "c", "d", "e", "f"]


async def test_a_busy_session_is_not_purged(talk: Talk) -> None:
    session_id = await talk.session("a")

    def send(tx: Tx) -> int:
        delivery_id = outbox.add_delivery(
            tx, (TextPart(text="x"),), to=Address.of(PHONE), key="k", session_id=session_id
        )
        assert delivery_id is not None
        connector = connector_leases.take(tx, platform="telegram", account="", holder="g")
        assert connector is not None
        assert outbox.claim(tx, delivery_id, holder="g", epoch=connector.epoch)
        return delivery_id

    await talk.database.write(send)
    with pytest.raises(SessionBusy, match="being sent"):
        await do_purge(talk, session_id)
    assert await talk.texts(session_id) == ["a"]


async def test_a_session_with_a_running_process_is_not_purged(talk: Talk) -> None:
    session_id = await talk.session("a")
    new = NewProcess(command="make", workspace=None)
    process_id = await talk.database.write(
        lambda tx: record_started(tx, new, session_id=session_id, person_id=talk.owner.id)
    )
    with pytest.raises(SessionBusy, match="A process"):
        await do_purge(talk, session_id)
    await talk.database.write(lambda tx: record_end(tx, process_id, "exited", exit_code=0))
    await do_purge(talk, session_id)


async def test_only_the_owner_purges(talk: Talk) -> None:
    session_id = await talk.session("a", source=FAMILY)
    ben = await talk.stranger()
    audience_id = (await talk.record(session_id)).audience_id
    await talk.database.write(lambda tx: people.join_audience(tx, person_id=ben.id, audience_id=audience_id))
    with pytest.raises(NotAllowed):
        await talk.database.write(lambda tx: purge_session(tx, session_id, person_id=ben.id))


async def test_the_bin_is_emptied_after_thirty_days(talk: Talk, clock: FakeClock) -> None:
    by = talk.owner.id
    gone, restored, later = [await talk.session(text) for text in ("a", "b", "c")]
    for session_id in (gone, restored):
        await talk.database.write(
            partial(delete, session_id=session_id, actor=Actor(person_id=by, give_way=give_way))
        )
    await talk.database.write(lambda tx: restore(tx, restored, person_id=by))
    clock.advance(30 * DAY - 1)
    await talk.database.write(lambda tx: delete(tx, later, actor=Actor(person_id=by, give_way=give_way)))
    assert await talk.database.write(empty_bin) == BinEmptied(purged=(), busy=())
    clock.advance(1)
    outcome = await talk.database.write(empty_bin)
    assert outcome == BinEmptied(purged=(Purged(session_id=gone, messages=1, copied=0),), busy=())
    assert await talk.texts(restored) == ["b"]
    assert await talk.texts(later) == ["c"]


async def test_a_busy_session_stays_in_the_bin(talk: Talk, clock: FakeClock) -> None:
    by = talk.owner.id
    session_id = await talk.session("a")
    await talk.database.write(lambda tx: delete(tx, session_id, actor=Actor(person_id=by, give_way=give_way)))
    clock.advance(31 * DAY)
    await talk.ask(session_id, "late", ref="1")
    await talk.turn(session_id)
    assert await talk.database.write(empty_bin) == BinEmptied(purged=(), busy=(session_id,))


async def test_prune_bins_only_old_closed_sessions(talk: Talk, clock: FakeClock) -> None:
    by = talk.owner.id
    old, pinned, opened, elsewhere = [
        await talk.session(text, source=source)
        for text, source in (("a", LOCAL_CLI), ("b", LOCAL_CLI), ("c", LOCAL_CLI), ("d", PHONE))
    ]

    def prepare(tx: Tx) -> None:
        for session_id in (old, pinned, elsewhere):
            close(tx, session_id, person_id=by, reason="done")
        pin(tx, pinned, person_id=by)

    await talk.database.write(prepare)
    child = await do_fork(talk, old)
    clock.advance(90 * DAY)
    assert await talk.database.write(lambda tx: prune(tx, person_id=by)) == Pruned(binned=(), busy=())
    clock.advance(1)
    pruned = await talk.database.write(lambda tx: prune(tx, person_id=by, platform="local"))
    assert pruned == Pruned(binned=(old,), busy=())
    assert (await talk.record(old)).deleted_at is not None
    assert await talk.texts(child) == ["a"]
    pruned = await talk.database.write(lambda tx: prune(tx, person_id=by))
    assert pruned == Pruned(binned=(elsewhere,), busy=())
    for spared in (pinned, opened, child):
        assert (await talk.record(spared)).deleted_at is None


async def test_prune_waits_for_a_running_turn(talk: Talk, clock: FakeClock) -> None:
    by = talk.owner.id
    session_id = await talk.session("a")
    await talk.database.write(lambda tx: close(tx, session_id, person_id=by, reason="done"))
    clock.advance(91 * DAY)

    def hold(tx: Tx) -> None:
        assert leases.take_lease(tx, session_id, holder="g") is not None

    await talk.database.write(hold)
    pruned = await talk.database.write(lambda tx: prune(tx, person_id=by))
    assert pruned == Pruned(binned=(), busy=(session_id,))


async def test_days_are_not_negative(talk: Talk) -> None:
    with pytest.raises(InvalidValue, match="0 or more"):
        await talk.database.write(lambda tx: prune(tx, person_id=talk.owner.id, days=-1))


@pytest.mark.parametrize("seed", range(4))
async def test_every_branch_shows_what_a_model_of_lists_shows(talk: Talk, seed: int) -> None:
    """Compare with a model that copies lists: per session, the texts of each branch and which one is shown."""
    chance = random.Random(seed)
    by = talk.owner.id
    model: dict[SessionId, tuple[list[list[str]], int]] = {}
    started = await talk.session("0u", "0a")
    model[started] = ([["0u", "0a"]], 0)
    for step in range(1, 40):
        session_id = chance.choice(sorted(model))
        lists, shown = model[session_id]
        match chance.choice(["say", "say", "undo", "redo", "switch", "fork", "edit", "retry", "purge"]):
            case "say":
                await talk.say(session_id, f"{step}u", f"{step}a")
                lists[shown] += [f"{step}u", f"{step}a"]
            case "undo" if lists[shown]:
                await talk.database.write(
                    partial(undo, session_id=session_id, actor=Actor(person_id=by, give_way=give_way))
                )
                lists.append(lists[shown][: _last_asked(lists[shown])[0]])
                model[session_id] = (lists, len(lists) - 1)
            case "switch" | "redo":
                no = chance.randrange(len(lists))
                await talk.database.write(
                    partial(
                        switch_branch,
                        session_id=session_id,
                        no=no,
                        actor=Actor(person_id=by, give_way=give_way),
                    )
                )
                model[session_id] = (lists, no)
            case "fork":
                fork_id = await do_fork(talk, session_id)
                model[fork_id] = ([list(lists[shown])], 0)
            case "retry" if lists[shown]:
                await talk.database.write(
                    partial(retry, session_id=session_id, actor=Actor(person_id=by, give_way=give_way))
                )
                lists.append(lists[shown][: _last_asked(lists[shown])[1]])
                model[session_id] = (lists, len(lists) - 1)
            case "edit" if lists[shown]:
                place = chance.randrange(len(lists[shown]))
                ending = lists[shown][place][-1]
                seq = await talk.database.read(partial(_seq_at, session_id=session_id, place=place))
                new = (TextPart(text=f"{step}{ending}"),)
                await talk.database.write(
                    partial(
                        edit,
                        session_id=session_id,
                        seq=seq,
                        parts=new,
                        actor=Actor(person_id=by, give_way=give_way),
                    )
                )
                lists.append([*lists[shown][:place], f"{step}{ending}"])
                model[session_id] = (lists, len(lists) - 1)
            case "purge" if len(model) > 1:
                await do_purge(talk, session_id)
                del model[session_id]
            case _:
                continue
        for known, (known_lists, known_shown) in model.items():
            assert await talk.texts(known) == known_lists[known_shown]


def _last_asked(texts: list[str]) -> tuple[int, int]:
    """Return the range of the last consecutive user messages."""
    end = max(place for place, text in enumerate(texts) if text.endswith("u")) + 1
    begin = end - 1
    while begin and texts[begin - 1].endswith("u"):
        begin -= 1
    return begin, end


def _seq_at(tx: ReadTx, session_id: SessionId, place: int) -> int:
    return shown_messages(tx, session_id)[place].seq
