"""Long results: kept whole with what is shown of them, and read by the conversations they belong to."""

import pytest

from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.transactions.append_message import Appended
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.media import tables as blobs
from keryx.core.media.rules import SEARCHED_CHARACTERS_MAX, WINDOW_CHARACTERS_MAX, LongResult
from keryx.core.media.transactions import collect_blobs
from keryx.core.media.views import read_result
from keryx.core.search.transactions.index_messages import index_step
from keryx.core.search.views.search import search
from keryx.core.search.views.verify_index import verify_index
from keryx.core.turns.transactions.record_step import CallAlreadyEnded, record_result
from keryx.core.upkeep.transactions.purge_session import purge_session
from keryx.errors import NotFound, ToolFailed
from keryx.store.database import Database, Tx
from keryx.testing.builders import dm, result_message
from keryx.testing.clock import FakeClock
from keryx.tools.keryx.read_result import ReadResult
from keryx.tools.tool import ToolCall
from tests.conformance.acting import call
from tests.conformance.stage import Stage

LONG = LongResult(text="".join(f"{number} \ud800\0" for number in range(5_000)))


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage(database=database, clock=clock)


async def look_up(stage: Stage, whole: LongResult = LONG, *, user: str = "ana") -> SessionId:
    """Let a turn get a long result; return its session."""
    session_id = (await stage.accept(f"look, {user}", source=dm(user))).session_id
    begun = await stage.begin()
    await call(stage, begun, ("a", "pure"))

    def record(tx: Tx) -> Appended | CallAlreadyEnded:
        shown = result_message("a", whole.shown)
        return record_result(tx, begun.held, result=shown, whole=whole)

    assert isinstance(await stage.do(record), Appended)
    assert isinstance(await stage.do(record), CallAlreadyEnded)
    await stage.finish(begun)
    return session_id


async def ask(stage: Stage, session_id: str, **arguments: int | str) -> str:
    use = ToolCall(arguments=arguments, session_id=session_id, person_id=1, audience_id=None, key="k")
    told = await ReadResult(stage.database).run(use)
    assert isinstance(told, str)
    return told


async def test_a_long_result_is_read_window_by_window(stage: Stage) -> None:
    await stage.meet("ana")
    session_id = await look_up(stage)
    total = len(LONG.text)
    read = ""
    while len(read) < total:
        heading, _, window = (await ask(stage, session_id, result=LONG.hash, offset=len(read))).partition(
            "\n"
        )
        end = len(read) + len(window)
        assert heading.startswith(f"Characters {len(read)} to {end} of {total}.")
        assert heading.endswith(f"Read on with offset {end}.") == (end < total)
        assert len(window) <= WINDOW_CHARACTERS_MAX
        read += window
    assert read == LONG.text
    assert await ask(stage, session_id, result=f" {LONG.hash.upper()}", offset=1, limit=2) == (
        f"Characters 1 to 3 of {total}. Read on with offset 3.\n{LONG.text[1:3]}"
    )
    with pytest.raises(ToolFailed, match=f"has {total} characters"):
        await ask(stage, session_id, result=LONG.hash, offset=total)


async def test_a_result_is_read_by_its_own_conversation_and_its_forks_alone(stage: Stage) -> None:
    ana = await stage.meet("ana")
    await stage.meet("ben")
    session_id = await look_up(stage)
    bens = await look_up(stage, LongResult(text="x"), user="ben")
    forked = await stage.do(lambda tx: fork_session(tx, stage.ids, session_id, person=ana))
    assert await stage.look(lambda tx: read_result(tx, session_id, LONG.hash)) == LONG.text
    assert await stage.look(lambda tx: read_result(tx, forked, LONG.hash)) == LONG.text
    assert await stage.look(lambda tx: read_result(tx, bens, LONG.hash)) is None
    with pytest.raises(ToolFailed, match="has no such result"):
        await ask(stage, bens, result=LONG.hash)
    stage.clock.advance(2 * 24 * 3_600 * 1_000_000)
    await stage.do(lambda tx: purge_session(tx, session_id, person_id=ana.id))
    assert await stage.do(collect_blobs) == [], "the fork needs it"
    assert await stage.look(lambda tx: read_result(tx, forked, LONG.hash)) == LONG.text
    await stage.do(lambda tx: purge_session(tx, forked, person_id=ana.id))
    assert await stage.do(collect_blobs) == [LONG.hash]


async def test_a_blob_that_is_no_result_is_not_read(stage: Stage) -> None:
    await stage.meet("ana")
    session_id = await look_up(stage)

    def keep(tx: Tx) -> None:
        for digit, media_type, data in (
            ("a", "image/png", b"\x89PNG"),
            ("b", "text/plain; charset=utf-8", None),
        ):
            blobs.add_blob(tx, hash=digit * 64, media_type=media_type, size_bytes=4, data=data)
            blobs.add_ref(tx, hash=digit * 64, holder=blobs.session_holder(session_id))

    await stage.do(keep)
    for digit in "ab":
        assert await stage.look(lambda tx, digit=digit: read_result(tx, session_id, digit * 64)) is None  # type: ignore[misc]


async def test_a_result_that_is_not_stored_adds_no_blob(stage: Stage) -> None:
    await stage.meet("ana")
    session_id = (await stage.accept("look")).session_id
    begun = await stage.begin()
    with pytest.raises(NotFound):
        await stage.do(
            lambda tx: record_result(tx, begun.held, result=result_message("never called"), whole=LONG)
        )
    assert await stage.look(lambda tx: read_result(tx, session_id, LONG.hash)) is None


async def found(stage: Stage, words: str, *, person_id: int) -> list[str]:
    """Return the conversations in which a search finds words."""
    result = await stage.look(lambda tx: search(tx, words, person_id=person_id))
    return [session.session_id for session in result.sessions]


async def index(stage: Stage) -> int:
    """Index everything; return in how many steps."""
    steps = 1
    while (await stage.database.write_index(index_step)).more:
        steps += 1
    assert await stage.look(verify_index) == ()
    return steps


async def test_the_omitted_part_of_a_long_result_is_found_with_and_without_the_index(stage: Stage) -> None:
    ana = await stage.meet("ana")
    ben = await stage.meet("ben")
    middle = f"{'a ' * 10_000}quokka {'b ' * 10_000}"
    session_id = await look_up(stage, LongResult(text=middle))
    for _ in range(2):
        assert await found(stage, "quokka", person_id=ana.id) == [session_id]
        assert await found(stage, "read_result", person_id=ana.id) == [], "the note is not what the tool said"
        assert await found(stage, "quokka", person_id=ben.id) == []
        await index(stage)
    forked = await stage.do(lambda tx: fork_session(tx, stage.ids, session_id, person=ana))
    for purged, where in ((session_id, [forked]), (forked, [])):
        await stage.do(lambda tx, purged=purged: purge_session(tx, purged, person_id=ana.id))  # type: ignore[misc]
        for _ in range(2):
            assert await found(stage, "quokka", person_id=ana.id) == where
            await index(stage)


async def test_of_a_very_long_result_the_beginning_and_the_end_are_found(stage: Stage) -> None:
    ana = await stage.meet("ana")
    half = "a " * (SEARCHED_CHARACTERS_MAX // 2)
    session_id = await look_up(stage, LongResult(text=f"first {half}second {half}third"))
    for _ in range(2):
        for word, where in (("first", [session_id]), ("second", []), ("third", [session_id])):
            assert await found(stage, word, person_id=ana.id) == where
        await index(stage)


async def test_a_result_of_another_conversation_is_not_found_by_naming_it(stage: Stage) -> None:
    ana = await stage.meet("ana")
    ben = await stage.meet("ben")
    whole = LongResult(text=f"{'a ' * 10_000}quokka {'b ' * 10_000}")
    await look_up(stage, whole)
    forged = (await stage.accept("look", source=dm("ben"))).session_id
    begun = await stage.begin()
    await call(stage, begun, ("a", "pure"))
    await stage.do(
        lambda tx: record_result(tx, begun.held, result=result_message("a", whole.shown), whole=None)
    )
    await stage.finish(begun)
    for _ in range(2):
        assert await found(stage, "quokka", person_id=ben.id) == []
        assert await found(stage, "left", person_id=ben.id) == [forged]
        assert len(await found(stage, "quokka", person_id=ana.id)) == 1
        await index(stage)


async def test_long_results_are_indexed_a_few_at_a_time(stage: Stage) -> None:
    for user in ("ana", "ben", "cem"):
        await stage.meet(user)
        await look_up(stage, LongResult(text=f"{user} " * 10_000), user=user)
    assert await index(stage) > 3
