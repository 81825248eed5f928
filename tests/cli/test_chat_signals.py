"""A signal ends a chat in order: with its exit code, and with everything that the chat started."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from keryx.cli.chat.worker import is_alive
from tests.cli.terminal import ROOT, ChatProcess, chat_process, command, environment
from tests.cli.test_chat import look

FIFO = "child"


async def start_child(person: ChatProcess, folder: Path) -> int:
    """Let the agent run a program of 24 hours, and return its process id."""
    os.mkfifo(folder / FIFO)
    person.enter(f"run echo $$ > {folder / FIFO}; exec sleep 86399")
    return int(await asyncio.to_thread((folder / FIFO).read_text))


@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "hung up"])
async def test_a_signal_ends_the_chat_and_its_programs_and_hands_the_turn_back(
    how: str, tmp_path: Path
) -> None:
    store = str(tmp_path / "keryx.db")
    async with chat_process(store, "--gate", str(tmp_path / "gate")) as person:
        await person.sees("Ready.")
        child = await start_child(person, tmp_path)
        assert is_alive(child)
        if how == "hung up":
            person.hang_up()
        else:
            person.process.send_signal(signal.Signals[how])
            await person.sees("keryx chat --resume")
        assert await person.ended() == (143 if how == "SIGTERM" else 129)
        assert not is_alive(child)
    assert await look(store) == ([], ["None"])


async def test_a_signal_ends_a_script_that_waits_for_answers(tmp_path: Path) -> None:
    store = str(tmp_path / "keryx.db")
    process = await asyncio.create_subprocess_exec(
        *command("chat", store, "--gate", str(tmp_path / "gate")),
        cwd=ROOT,
        env=environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"hello\ntell me\n")
    process.stdin.close()
    while await process.stdout.readline() != b"Once there was a herald.\n":
        assert not process.stdout.at_eof()
    process.send_signal(signal.SIGTERM)
    await process.stdout.read()
    assert await process.wait() == 143
    assert await look(store) == ([], ["answered", "None"])
