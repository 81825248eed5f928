"""A large backlog is indexed by a worker process."""

import asyncio
import json
import os
import sys
from io import StringIO
from pathlib import Path

import pytest

import keryx
from keryx.core.conversations.rules.message import text_message
from keryx.core.search.indexing import indexer as indexing
from keryx.core.search.indexing.indexer import BACKLOG_MIN, Indexer
from keryx.core.search.indexing.worker import serve
from keryx.core.search.indexing.worker_process import IndexWorker
from keryx.errors import StoreUnavailable
from keryx.store.opening import open_database


async def test_a_large_backlog_is_indexed_by_a_worker(store_address: str) -> None:
    async with keryx.open(store_address) as kx:
        session = await kx.create_session()
        texts = [text_message("user", f"number {number}") for number in range(BACKLOG_MIN + 1)]
        await kx.append_all(session.id, texts)
        await kx.wait_indexed()
        assert await kx.verify_index() == ()
        found = await kx.search(f"{BACKLOG_MIN}")
        assert found.not_indexed == 0
        assert found.sessions[0].hits[0].seq == BACKLOG_MIN + 1


async def test_a_worker_catches_up_and_ends_with_its_input(store_address: str) -> None:
    async with keryx.open(store_address) as kx:
        session = await kx.create_session()
        await kx.append(session.id, role="user", text="hotel")
        worker = await IndexWorker.start(store_address)
        await worker.catch_up()
        assert await kx.verify_index() == ()
        await worker.stop()
        with pytest.raises(StoreUnavailable, match="the process has ended"):
            await worker.catch_up()


def run_worker(address: str | Path, requests: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run the worker's program in this process, and return its answers."""
    reading, writing = os.pipe()
    os.write(writing, (json.dumps(str(address)) + "\n" * (requests + 1)).encode())
    os.close(writing)
    answers = StringIO()
    monkeypatch.setattr(os, "nice", lambda _: 0)
    with os.fdopen(reading) as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        monkeypatch.setattr(sys, "stdout", answers)
        asyncio.run(serve())
        monkeypatch.undo()
    return answers.getvalue().splitlines()


async def test_the_program_of_the_worker_indexes_once_for_each_line(
    store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with keryx.open(store_address) as kx:
        session = await kx.create_session()
        await kx.append(session.id, role="user", text="hotel")
        assert await asyncio.to_thread(run_worker, store_address, 2, monkeypatch) == ["done"] * 3
        assert (await kx.search("hotel")).not_indexed == 0


async def test_the_program_of_the_worker_says_in_one_line_what_went_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [answer] = await asyncio.to_thread(run_worker, "http://no.store", 1, monkeypatch)
    assert "is not an address of a store" in answer


async def test_a_worker_that_cannot_open_the_store_says_why_and_ends(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await IndexWorker.start(tmp_path / "file" / "keryx.db")


async def test_a_worker_ends_if_its_start_is_cancelled(store_address: str) -> None:
    with pytest.raises(TimeoutError):
        # Far less time than the start of an interpreter takes.
        await asyncio.wait_for(IndexWorker.start(store_address), 0.02)


async def test_without_a_worker_the_program_indexes_by_itself(
    store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    async with keryx.open(store_address) as kx:
        session = await kx.create_session()
        for _ in range(2):
            await kx.append_all(session.id, [text_message("user", "hotel")] * BACKLOG_MIN)
            await kx.wait_indexed()
        assert await kx.verify_index() == ()


async def test_an_idle_worker_ends_although_small_writes_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "IDLE_SECONDS", 0.5)
    database = open_database(tmp_path / "keryx.db")
    before = children()
    indexer = Indexer(database, tmp_path / "keryx.db", backlog_min=2)
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
    """Return the running child processes."""
    tasks = Path("/proc/self/task").iterdir()
    return {pid for task in tasks for pid in (task / "children").read_text().split()}
