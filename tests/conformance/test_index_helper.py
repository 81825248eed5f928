"""Much to index at once is indexed by a process of its own."""

import asyncio
import sys
from pathlib import Path

import pytest

import keryx
from keryx.domain.message import text_message
from keryx.errors import StoreUnavailable
from keryx.library import indexing
from keryx.library.index_helper import IndexHelper
from keryx.library.indexing import ROWS_WAITING_MAX, Indexer
from keryx.store.opening import open_database


async def test_much_at_once_is_indexed_beside_the_program(store_address: str) -> None:
    async with keryx.open(store_address) as kx:
        session = await kx.create_session()
        texts = [text_message("user", f"number {number}") for number in range(ROWS_WAITING_MAX + 1)]
        await kx.append_all(session.id, texts)
        await kx.wait_indexed()
        assert await kx.verify_index() == ()
        found = await kx.search(f"{ROWS_WAITING_MAX}")
        assert found.not_indexed == 0
        assert found.sessions[0].hits[0].seq == ROWS_WAITING_MAX + 1


async def test_a_helper_catches_up_and_ends_with_its_input(store_address: str) -> None:
    async with keryx.open(store_address) as kx:
        session = await kx.create_session()
        await kx.append(session.id, role="user", text="hotel")
        helper = await IndexHelper.start(store_address)
        await helper.catch_up()
        assert await kx.verify_index() == ()
        await helper.stop()
        with pytest.raises(StoreUnavailable, match="it is gone"):
            await helper.catch_up()


async def test_a_helper_that_cannot_open_the_store_says_why_and_is_gone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await IndexHelper.start(tmp_path / "file" / "keryx.db")


async def test_a_helper_whose_start_is_given_up_is_gone(store_address: str) -> None:
    with pytest.raises(TimeoutError):
        # Far less than a new interpreter takes.
        await asyncio.wait_for(IndexHelper.start(store_address), 0.02)


async def test_without_a_helper_the_program_indexes_by_itself(
    store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    async with keryx.open(store_address) as kx:
        session = await kx.create_session()
        for _ in range(2):
            await kx.append_all(session.id, [text_message("user", "hotel")] * ROWS_WAITING_MAX)
            await kx.wait_indexed()
        assert await kx.verify_index() == ()


async def test_a_helper_that_is_not_needed_goes_however_often_somebody_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "IDLE_SECONDS", 0.5)
    database = open_database(tmp_path / "keryx.db")
    before = children()
    indexer = Indexer(database, tmp_path / "keryx.db", helper_rows=2)
    indexer.note(5)
    await indexer.caught_up()
    assert children() > before
    async with asyncio.timeout(20):
        while children() > before:
            indexer.note(1)
            await asyncio.sleep(0.2)
    await indexer.stop()
    await database.close()


def children() -> set[str]:
    """The processes that this one started and that still run."""
    tasks = Path("/proc/self/task").iterdir()
    return {pid for task in tasks for pid in (task / "children").read_text().split()}
