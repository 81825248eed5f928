"""The terminal chat: run a window on a conversation until the person leaves, then finish what is under way.

A line that is typed is accepted like any message, and the deliveries in the outbox are shown. The chat acts only
through the store. So it works alone, beside a gateway and beside other terminals, and a chat that was killed continues
where it was. SIGTERM and SIGHUP end the chat as leaving does, also when the terminal is gone. No delivery is shown
twice: the terminal that holds the account records a delivery as sent after showing it.
"""

import asyncio
import io
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from rich.console import Console

from keryx.agents.agent import Agent
from keryx.cli.chat.input import Input, LineInput
from keryx.cli.chat.keyboard import Keyboard
from keryx.cli.chat.quiet_keys import quiet_keys
from keryx.cli.chat.window import ChatWindow
from keryx.cli.chat.worker import TerminalWorker
from keryx.cli.signals import BY_SIGNAL, ended_by
from keryx.gateway.runtime.runtime import Runtime
from keryx.platforms.terminal.adapter import TerminalAdapter
from keryx.platforms.terminal.question import answer_for
from keryx.platforms.terminal.screen import Screen
from keryx.tools.tool import Toolbox

LEAVE_SECONDS: Final = 2.0
"""How long a running answer may still take when the person leaves. After that it waits for the next start."""


async def chat(
    runtime: Runtime,
    agent: Agent,
    toolbox: Toolbox,
    *,
    who: str,
    resume: str | None = None,
    history: Path | None = None,
) -> int:
    """Talk at this terminal until the person leaves, and return the exit code.

    ``who`` names the agent that answers, ``resume`` a conversation to continue, ``history`` the file of typed lines.
    """
    # Only the keyboard writes to the terminal, which may be gone.
    console = Console(file=io.StringIO(), force_terminal=sys.stdout.isatty() or None, highlight=False)
    screen = Screen(console)
    window = ChatWindow(runtime, screen)
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    keyboard: Input = (
        Keyboard(
            history=history,
            status=lambda: window.status,
            interrupt=window.interrupt,
            above=window.display.turn.draw,
        )
        if at_terminal
        else LineInput()
    )
    screen.write_with(keyboard.write, redraw=keyboard.redraw)
    adapter = TerminalAdapter(window.chat.source.account, shown=window.display.shown)
    with ended_by(window.end, signal.SIGTERM, signal.SIGHUP), _keys(window) if at_terminal else nullcontext():
        async with TerminalWorker(runtime, agent, toolbox, chat=window.chat, adapter=adapter) as worker:
            code = await _talk(window, worker, keyboard, who=who, resume=resume)
            if at_terminal and code == 0:
                await window.say_how_to_go_on()
            await keyboard.written()
    return code if window.ended_by is None else BY_SIGNAL + window.ended_by


@contextmanager
def _keys(window: ChatWindow) -> Iterator[None]:
    """Let Ctrl-C stop an answer, and every other key wait, also while the keyboard is not read."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, window.interrupt)
    try:
        with quiet_keys():
            yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def _talk(
    window: ChatWindow, worker: TerminalWorker, keyboard: Input, *, who: str, resume: str | None
) -> int:
    """Show and accept until the input ends or a signal comes; then finish what is under way.

    A person who leaves does not wait for answers; a script does. Return 1, with the reason shown, if the conversation
    to continue does not exist.
    """
    window.screen.greet(who)
    await window.begin()
    if resume and not await window.say(f"/resume {resume}"):
        await worker.end_turns(0)  # messages that wait in another conversation are not this call's business
        window.leave(hurried=True)
        await window.watch(worker, keyboard)
        window.close()
        return 1
    watching = asyncio.create_task(window.watch(worker, keyboard))
    reading = asyncio.create_task(_read(window, keyboard))
    ending = asyncio.create_task(window.ending.wait())
    try:
        await asyncio.wait({watching, reading, ending}, return_when=asyncio.FIRST_COMPLETED)
        for task in (watching, reading):
            if task.done():
                task.result()
        if not isinstance(keyboard, Keyboard) and not ending.done():
            window.leave(hurried=False)
            await asyncio.wait({watching, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not watching.done():
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await worker.end_turns(LEAVE_SECONDS)
            window.leave(hurried=True)
            await asyncio.wait({watching}, timeout=LEAVE_SECONDS)
        if watching.done():
            watching.result()
    finally:
        tasks = (watching, reading, ending)
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        window.close()
    return 0


async def _read(window: ChatWindow, keyboard: Input) -> None:
    while (text := await keyboard.read()) is not None:
        if text.strip():
            await window.say(answer_for(text, window.question))
