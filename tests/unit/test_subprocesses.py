"""Programs that Keryx starts."""

import asyncio
import gc
import os
import warnings
import weakref
from contextlib import suppress

from keryx.subprocesses.start_program import start_program
from tests.flow.running import until


async def test_a_program_that_ends_while_it_is_written_to_leaves_no_traceback() -> None:
    assert callable(start_program)  # importing its package prevents the traceback
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()  # the garbage of earlier tests, whose warnings would fail this one
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["message"]))
    process = await asyncio.create_subprocess_exec("sleep", "60", stdin=asyncio.subprocess.PIPE)
    assert process.stdin is not None
    process.kill()
    # It has ended, and the loop has not had the time to notice.
    with suppress(ChildProcessError):  # another thread may wait for it already
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - that is the point
    process.stdin.write(b"Are you there?")
    pipe = weakref.ref(process.stdin.transport)
    await process.wait()
    del process

    def is_collected() -> bool:
        gc.collect()
        return pipe() is None

    await until(is_collected)  # the loop holds the pipe until it has told of its end
    assert told == []
