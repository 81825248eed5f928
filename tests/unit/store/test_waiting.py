"""Tasks wait for the store's work and commits."""

import asyncio
import threading

import pytest

from keryx.errors import StoreUnavailable
from keryx.store.waiting import (
    QUICK_IN_A_ROW,
    CommitCounter,
    Outcome,
    PendingWork,
    Threads,
    run_elsewhere,
    safe_for_future,
)


def test_a_waiter_with_a_closed_loop_is_not_woken() -> None:
    changes = CommitCounter(on_wait=lambda: None)
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _loop, _context: None)
    task = loop.create_task(changes.wait(0, 60))
    loop.run_until_complete(asyncio.sleep(0))
    assert changes.watched
    loop.close()
    changes.note()
    assert changes.number == 1
    assert not task.done()


async def test_a_cancelled_waiter_is_removed() -> None:
    begun = threading.Event()
    changes = CommitCounter(on_wait=begun.set)
    task = asyncio.create_task(changes.wait(0, 60))
    await asyncio.sleep(0)
    assert begun.is_set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not changes.watched


async def test_waiting_ends_after_the_timeout() -> None:
    changes = CommitCounter(on_wait=lambda: None)
    assert not await changes.wait(0, 0.001)
    assert not changes.watched


async def test_a_waiter_for_a_topic_sleeps_through_other_commits() -> None:
    changes = CommitCounter(on_wait=lambda: None)
    turns = asyncio.create_task(changes.wait(0, 60, topic="turns"))
    anything = asyncio.create_task(changes.wait(0, 60))
    await asyncio.sleep(0)
    changes.note(["deliveries"])
    assert await anything
    assert not turns.done()
    assert await changes.wait(0, 60, topic="deliveries")
    changes.note(["turns"])
    assert await turns
    # A commit of another process has no topic.
    changes.note()
    assert await changes.wait(2, 60, topic="turns")
    assert not await changes.wait(3, 0.001, topic="turns")


async def test_closed_threads_refuse_work() -> None:
    threads = Threads(1, name="test")
    assert await threads.run(lambda: 7) == 7
    threads.close()
    with pytest.raises(StoreUnavailable, match="was closed"):
        await threads.run(lambda: 7)


async def test_the_caller_blocks_for_quick_work_and_sleeps_for_slow_work() -> None:
    threads = Threads(1, name="test", moment_seconds=30)
    assert await threads.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0)
    threads.close()
    threads = Threads(1, name="test", moment_seconds=0.0001)
    go_on = threading.Event()
    slow = asyncio.create_task(threads.run(lambda: go_on.wait(30)))
    await asyncio.sleep(0)
    assert not slow.done()
    go_on.set()
    assert await slow
    threads.close()


async def test_quick_work_gives_other_tasks_a_turn() -> None:
    threads = Threads(1, name="test", moment_seconds=30)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count_turns())
    for _ in range(4 * QUICK_IN_A_ROW):
        await threads.run(lambda: None)
    assert turns >= 3
    other.cancel()
    threads.close()


async def test_work_that_ends_as_the_caller_goes_to_sleep_is_not_missed() -> None:
    threads = Threads(2, name="test", moment_seconds=0.000001)
    for number in range(200):
        assert await threads.run(lambda number=number: number) == number  # type: ignore[misc]
    threads.close()


async def test_ended_work_needs_no_sleep() -> None:
    pending = PendingWork(lambda: 7)
    pending.result = pending.work()
    assert pending.end() is None
    await pending.ended()
    assert pending.take() == 7


async def test_work_on_a_new_thread_has_an_outcome() -> None:
    assert await run_elsewhere(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await run_elsewhere(lambda: 1 // 0)


async def test_an_outcome_cannot_be_cancelled() -> None:
    outcome: Outcome[int] = Outcome()
    assert not outcome.cancel()
    outcome.set_result(7)
    assert await outcome == 7


def test_only_stop_iteration_is_replaced() -> None:
    error = KeyError("x")
    assert safe_for_future(error) is error
    stop = StopIteration(7)
    instead = safe_for_future(stop)
    assert isinstance(instead, RuntimeError)
    assert instead.__cause__ is stop
