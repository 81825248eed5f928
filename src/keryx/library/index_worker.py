"""The process that ``index_helper`` starts: ``python -m keryx.library.index_worker``.

Its input is the store's address as JSON and then a line for each round; it answers each with a line, and ends when the
input does.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from select import select
from typing import Final

from keryx.errors import KeryxError
from keryx.store.opening import open_database
from keryx.transactions.index_messages import index_step

NICER: Final = 5
"""Writes go before indexing where the machine has to choose."""


async def serve() -> None:
    """Open the store whose address comes first, then index at every further line, until the input ends."""
    os.nice(NICER)
    lines = sys.stdin
    try:
        database = open_database(json.loads(lines.readline()))
    except KeryxError as error:
        _answer(_sentence(error))
        return
    _answer("done")
    while lines.readline():
        try:
            # Nothing is asked before the answer, so what can be read meanwhile is the input's end.
            while (await database.write_index(index_step)).more and not select([lines], [], [], 0)[0]:
                pass
        except KeryxError as error:
            _answer(_sentence(error))
        else:
            _answer("done")
    await database.close()


def _sentence(error: KeryxError) -> str:
    return str(error).replace("\n", " ")


def _answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Whoever asked may be gone when the answer comes.
    with suppress(BrokenPipeError):
        asyncio.run(serve())
