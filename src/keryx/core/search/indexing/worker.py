"""The worker process of ``worker_process``: ``python -m keryx.core.search.indexing.worker``.

The first line of its input is the address of the store as JSON. Each further line asks for a round of indexing, and
the worker answers each with a line. The worker ends when its input ends.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from select import select
from typing import Final

from keryx.core.search.transactions.index_messages import index_step
from keryx.errors import KeryxError
from keryx.store.opening import open_database

NICENESS: Final = 5
"""On a busy machine, writes go before indexing."""


async def serve() -> None:
    """Open the store at the address in the first line, then index at every further line until the input ends."""
    os.nice(NICENESS)
    lines = sys.stdin
    try:
        database = open_database(json.loads(lines.readline()))
    except KeryxError as error:
        _answer(_one_line(error))
        return
    _answer("done")
    while lines.readline():
        try:
            # The parent sends nothing before the answer, so readable input means that the input has ended.
            while (await database.write_index(index_step)).more and not select([lines], [], [], 0)[0]:
                pass
        except KeryxError as error:
            _answer(_one_line(error))
        else:
            _answer("done")
    await database.close()


def _one_line(error: KeryxError) -> str:
    return str(error).replace("\n", " ")


def _answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # The parent may be gone when the answer comes.
    with suppress(BrokenPipeError):
        asyncio.run(serve())
