"""A program with the offline model's protocol and no model: it answers with what it was asked.

``python -m tests.unit.agents.offline_program [broken | gone | silent]``; with ``parent`` it is whoever starts such a
program, and prints its number.
"""

import asyncio
import json
import sys
import threading

from keryx.agents.model.offline import OfflineProcess
from keryx.agents.model.offline_child import run
from keryx.testing.model_server import Asked, ModelServer, Reply

PROGRAM = (sys.executable, "-m", "tests.unit.agents.offline_program")


def repeat(asked: Asked) -> Reply:
    return Reply(text=json.dumps({"messages": asked.messages, "tools": asked.body.get("tools")}))


def start(token: str) -> tuple[str, object]:
    """Serve on a thread, as the engine does."""
    server = ModelServer(repeat, key=token, models=["smollm2"])
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
    sys.stdout.write("an engine prints what it likes\n")
    sys.stdout.flush()
    return server.url, server


def broken(token: str) -> tuple[str, object]:
    raise RuntimeError("the weights are torn")


async def parent() -> None:
    process = OfflineProcess(PROGRAM, packages=())
    await process.variables()
    print(process.pid, flush=True)  # noqa: T201 - the test reads it
    await asyncio.Event().wait()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["parent"]:
            asyncio.run(parent())
        case ["gone"]:
            sys.exit(3)
        case ["silent"]:
            sys.stdin.read()
        case ["broken"]:
            run(broken)
        case _:
            run(start)
