"""A scripted provider in a process of its own: ``python -m bench.model.provider`` tells its address, then serves.

It ends with its input. What it answers is what it is asked for: ``words N``, ``slow``, ``hang`` or ``call``; anything
else gets one word.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.driver import REPOSITORY, WorkerError
from keryx.testing.model_server import Asked, Call, ModelServer, Reply

MODEL = "scripted"
TOOL = "errand"
SLOW_SECONDS = 0.02
SLOW_WORDS = 1_000


def play(asked: Asked) -> Reply:
    """Answer what was said last."""
    said = [str(each["content"]) for each in asked.messages if each["role"] == "user"]
    match said[-1].split() if said else []:
        case ["words", number]:
            return Reply(text=" ".join(["word"] * int(number)))
        case ["slow"]:
            return Reply(text=" ".join(["word"] * SLOW_WORDS), pause_seconds=SLOW_SECONDS)
        case ["hang"]:
            return Reply(text="never", hang_after=0)
        case ["call"]:
            return Reply(calls=[Call(name=TOOL)])
        case _:
            return Reply(text="Yes.")


@contextmanager
def providing() -> Iterator[str]:
    """Run the provider, and give the address that a client of OpenAI's is given."""
    path = os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "src")))
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.model.provider"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            raise WorkerError("the scripted provider did not start")
        yield url
    finally:
        process.stdin.close()
        process.wait()


def variables(url: str) -> dict[str, str]:
    """Return the settings with which Keryx asks this provider."""
    return {"KERYX_MODEL": f"openai:{MODEL}", "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url}


async def _serve() -> None:
    async with ModelServer(play) as server:
        print(server.openai_url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
