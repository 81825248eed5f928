"""The process a contender runs in: reads requests from standard input, writes one answer line for each.

``python -m bench.worker NAME CORPUS`` in the contender's own interpreter. A request is ``{"do": name, "with": {…}}``,
an answer ``{"ok": {…}}``, ``{"missing": true}`` or ``{"error": text}``. Whatever a contender prints goes to standard
error: only this module writes answers.
"""

import asyncio
import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import TextIO

from bench.contenders.contract import Contender, NotOffered
from bench.operations import Operations, Result


async def serve(operations: Operations, answers: TextIO) -> None:
    """Answer requests until standard input ends."""
    # Read in a thread: a contender may have work of its own on this loop between requests.
    while line := await asyncio.to_thread(sys.stdin.readline):
        answers.write(json.dumps(await _answer(operations, line)) + "\n")
        answers.flush()


async def _answer(operations: Operations, line: str) -> Result:
    request = json.loads(line)
    try:
        return {"ok": await getattr(operations, request["do"])(**request["with"])}
    except NotOffered:
        return {"missing": True}
    except Exception as error:  # noqa: BLE001 - the driver decides; the traceback goes to the log
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Run the worker for the contender named on the command line."""
    name, corpus = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    module = importlib.import_module(f"bench.contenders.{name.replace('-', '_')}")
    contender: Contender = module.make()
    asyncio.run(serve(Operations(contender=contender, corpus=Path(corpus)), answers))


if __name__ == "__main__":
    main()
