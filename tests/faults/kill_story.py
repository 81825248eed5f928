"""Run the whole way of a message in processes that are killed, one before each statement.

This is a program of its own, so that it may fork: it has no threads, and a child process opens each store.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path

from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.record_step import Started, record_calls, record_result, start_call
from keryx.store.opening import open_database
from keryx.testing.builders import call_message, result_message
from keryx.testing.clock import FakeClock
from keryx.testing.faults import FaultHook
from tests.conformance.stage import Stage

KILLED = 9


def open_stage(path: Path, *, hook: FaultHook | None = None, later: int = 0) -> Stage:
    """Open the store with a clock that is advanced by ``later``."""
    clock = FakeClock()
    clock.advance(later)
    return Stage(database=open_database(path, clock=clock, hook=hook), clock=clock)


async def prepare(path: Path) -> None:
    """Create a store with Ana as a person."""
    stage = open_stage(path)
    await stage.meet("ana")
    await stage.database.close()


async def tell(path: Path, kill_before: int) -> None:
    """Accept and answer Ana's message; die on the way."""
    hook = FaultHook()
    stage = open_stage(path, hook=hook)
    hook.kill_before(kill_before)
    write = stage.database.write
    stage.do = write  # type: ignore[method-assign]  # the checks would be counted too
    await stage.accept("pay", ref="update-1")
    begun = await stage.begin()
    message = call_message(("pay", "once"))
    await write(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    await pay(stage, begun)
    await stage.finish(begun, "paid")
    await stage.database.close()


async def pay(stage: Stage, begun: BegunTurn) -> None:
    """Start the call, if it may start, and record its result."""
    start = await stage.do(lambda tx: start_call(tx, begun.held, call_id="pay"))
    if isinstance(start, Started):
        await stage.do(lambda tx: record_result(tx, begun.held, result=result_message("pay")))


async def go_on(path: Path) -> None:
    """Restart as a gateway does after a kill, and check that the message is answered exactly once."""
    stage = open_stage(path, later=LEASE_TIME + 1)
    await stage.check()
    # The message may not have been acknowledged, so the platform delivers it again.
    await stage.hear("pay", ref="update-1")
    while await stage.recover():
        pass
    while (begun := await stage.begin_if_any()) is not None:
        if begun.resumed:
            await pay(stage, begun)
        await stage.finish(begun, "paid")
    items = await stage.rows("SELECT fate FROM inbox")
    assert items == [("answered",)], items
    replies = await stage.deliveries()
    assert len(replies) == 1, replies
    assert await stage.rows("SELECT call_id FROM steps WHERE starts > 1") == []
    said = await stage.rows("SELECT COUNT(*) FROM messages WHERE role = 'user'")
    assert said == [(1,)], said
    await stage.database.close()


def in_child(work: Callable[[], Coroutine[object, object, None]]) -> int:
    """Run ``work`` in a child process and return its exit code."""
    child = os.fork()
    if child == 0:
        asyncio.run(work())
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(directory: Path) -> None:
    """Kill before each statement in turn, until all statements have run."""
    assert in_child(lambda: prepare(directory / "first" / "keryx.db")) == 0
    for number in count(1):
        path = directory / str(number) / "keryx.db"
        shutil.copytree(directory / "first", path.parent)
        end = in_child(lambda path=path, number=number: tell(path, number))  # type: ignore[misc]
        assert end in (0, KILLED), end
        assert in_child(lambda path=path: go_on(path)) == 0, f"killed before statement {number}"  # type: ignore[misc]
        if end == 0:
            sys.stdout.write(f"{number - 1}\n")
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
