"""The demo's store: every screen has something to show, nothing is broken, and nothing waits that nobody will do."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import keryx
from keryx.clock import DAY, HOUR, SECOND, Micros
from keryx.core.conversations.rules.message import MediaPart
from keryx.core.conversations.views.session_list import Session
from keryx.core.media.views import read_contents
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.demo.conversations import PLATFORMS
from keryx.demo.filling import fill_demo
from keryx.demo.player import DemoClock
from keryx.errors import InvalidValue
from keryx.store.opening import open_database
from tests.conformance.stage import statement

NOW: Micros = 1_790_000_000_000_000
KINDS = {
    "a turn for every way one ends": (
        "SELECT DISTINCT state FROM turns",
        {"finished", "failed", "stopped", "waiting"},
    ),
    "a question that waits": ("SELECT state FROM approvals", {"pending"}),
    "schedules": ("SELECT DISTINCT state FROM schedules", {"active", "paused"}),
    "processes that ended": ("SELECT DISTINCT state FROM processes", {"exited"}),
    "links": ("SELECT DISTINCT kind FROM links", {"reset", "fork"}),
    "messages sent and not": ("SELECT DISTINCT state FROM outbox", {"sent", "dead"}),
    "nothing to be answered": ("SELECT DISTINCT state FROM inbox", {"done", "dead", "claimed"}),
    "somebody at the door": ("SELECT DISTINCT state FROM pairings", {"approved", "pending"}),
    "branches": ("SELECT DISTINCT reason FROM branches", {"retry", "undo", "fork"}),
    "projects": ("SELECT name FROM projects", {"Rome in spring", "Herald"}),
    "a summary, a draft and a memory": (
        "SELECT 'c' FROM covers UNION SELECT 'd' FROM drafts UNION SELECT 'm' FROM memories",
        {"c", "d", "m"},
    ),
}


async def sessions_of(address: str | Path) -> dict[str | None, Session]:
    async with keryx.open(address, clock=DemoClock(wall=NOW)) as kx:
        return {each.title: each for each in (await kx.list_sessions(limit=100)).rows}


async def looked(address: str | Path, sql: str) -> set[object]:
    """Return the first column of what this finds, in a store in which nothing is broken."""
    database = open_database(address, clock=DemoClock(wall=NOW))
    try:
        assert await database.read(check_invariants) == []
        with statement("test.look", sql):
            rows = await database.read(lambda tx: tx.rows("test.look"))
        return {row[0] for row in rows}
    finally:
        await database.close()


async def see_picture(address: str | Path, media: list[MediaPart]) -> None:
    (picture,) = media
    assert picture.blob is not None
    hashes = [picture.blob]
    database = open_database(address)
    try:
        contents = await database.read(lambda tx: read_contents(tx, hashes))
    finally:
        await database.close()
    assert contents[picture.blob].startswith(b"\x89PNG")


async def test_every_screen_has_something_to_show(store_address: str) -> None:
    await fill_demo(store_address, now=NOW)
    for what, (sql, wanted) in KINDS.items():
        assert await looked(store_address, sql) == wanted, what
    async with keryx.open(store_address, clock=DemoClock(wall=NOW)) as kx:
        listed = (await kx.list_sessions(limit=100)).rows
        assert {each.platform for each in listed} == {*PLATFORMS, "schedule"} - {"whatsapp"}
        assert listed[0].title == "Trip to Rome"
        assert max(each.message_count for each in listed) > 150
        now = datetime.fromtimestamp(NOW / SECOND, tz=UTC)
        assert len((await kx.usage(since=now - timedelta(weeks=3), until=now)).days) > 14
        assert (await kx.search("hotel")).sessions
        parts = [part for message in await kx.transcript(listed[0].id) for part in message.parts]
    await see_picture(store_address, [part for part in parts if isinstance(part, MediaPart)])


async def test_the_same_time_makes_the_same_store(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        await fill_demo(tmp_path / name / "keryx.db", now=NOW)
    one, two = [await sessions_of(tmp_path / name / "keryx.db") for name in ("one", "two")]
    assert one == two


@pytest.mark.parametrize("hours", [0, 7])
async def test_the_demo_can_be_made_at_any_hour_and_contains_nothing_of_the_future(
    tmp_path: Path, hours: int
) -> None:
    now = NOW // DAY * DAY + hours * HOUR
    await fill_demo(tmp_path / "keryx.db", now=now)
    assert (
        await looked(tmp_path / "keryx.db", f"SELECT created_at FROM messages WHERE created_at > {now}")
        == set()
    )


async def test_a_store_with_conversations_is_refused(tmp_path: Path) -> None:
    address = tmp_path / "keryx.db"
    async with keryx.open(address) as kx:
        await kx.append((await kx.create_session()).id, role="user", text="Mine.")
    with pytest.raises(InvalidValue, match="only an empty store"):
        await fill_demo(address, now=NOW)
    assert list(await sessions_of(address)) == ["Mine."]
