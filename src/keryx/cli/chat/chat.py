"""Run the terminal chat until the person leaves, then finish the running work.

The chat acts only through the store: it accepts typed lines like any message, and shows the deliveries of the outbox.
So it works alone, beside a gateway and beside other terminals, and after a kill it continues where it was. SIGTERM and
SIGHUP end the chat in order, even if the terminal is gone. No delivery is shown twice: the terminal that holds the
connector lease records a delivery as sent after showing it.
"""

import asyncio
import io
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from rich.console import Console

from keryx.agents.agent import Agent
from keryx.cli.chat.keyboard import Keyboard
from keryx.cli.chat.terminal_io import Input, LineInput, quiet_keys
from keryx.cli.chat.window import ChatWindow
from keryx.cli.chat.worker import TerminalWorker
from keryx.cli.waiting import BY_SIGNAL, on_signals
from keryx.gateway.runtime.runtime import Runtime
from keryx.platforms.terminal.adapter import TerminalAdapter
from keryx.platforms.terminal.question import answer_for
from keryx.platforms.terminal.screen import Screen
from keryx.tools.tool import Toolbox

LEAVE_SECONDS: Final = 2.0
"""How long to wait for a running answer when the person leaves. After that, the next start continues it."""


async def chat(
    runtime: Runtime,
    agent: Agent,
    toolbox: Toolbox,
    *,
    agent_name: str,
    resume: str | None = None,
    history: Path | None = None,
) -> int:
    """Chat at this terminal until the person leaves, and return the exit code.

    ``resume`` names a conversation to continue, ``history`` the file of typed lines.
    """
    # Only the input writes to the terminal, which may be gone.
    console = Console(file=io.StringIO(), force_terminal=sys.stdout.isatty() or None, highlight=False)
    screen = Screen(console)
    window = ChatWindow(runtime, screen)
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    terminal: Input = (
        Keyboard(
            history=history,
            status=lambda: window.status,
            interrupt=window.interrupt,
            above=window.display.turn.draw,
        )
        if at_terminal
        else LineInput()
    )
    screen.write_with(terminal.write, redraw=terminal.redraw)
    adapter = TerminalAdapter(window.chat.source.account, shown=window.display.shown)
    with ExitStack() as stack:
        stack.enter_context(on_signals(window.end, signal.SIGTERM, signal.SIGHUP))
        if at_terminal:
            # Also while the keyboard is not read, Ctrl-C stops an answer and other keys are queued.
            stack.enter_context(on_signals(lambda _: window.interrupt(), signal.SIGINT))
            stack.enter_context(quiet_keys())
        async with TerminalWorker(runtime, agent, toolbox, chat=window.chat, adapter=adapter) as worker:
            screen.greet(agent_name)
            code = await _run(window, worker, terminal, resume=resume)
            if at_terminal and code == 0:
                await window.show_resume_command()
            await terminal.written()
    return code if window.ended_by is None else BY_SIGNAL + window.ended_by


async def _run(window: ChatWindow, worker: TerminalWorker, terminal: Input, *, resume: str | None) -> int:
    """Show and accept messages until the input ends or a signal arrives; then finish the running work.

    At a terminal, do not wait for answers; in a script, wait for all of them. Return 1, with the reason shown, if the
    conversation to continue does not exist.
    """
    await window.begin()
    if resume and not await window.enter(f"/resume {resume}"):
        await worker.end_turns(0)  # leave the queued messages of the current conversation alone
        window.leave(hurried=True)
        await window.watch(worker, terminal)
        window.close()
        return 1
    watching = asyncio.create_task(window.watch(worker, terminal))
    reading = asyncio.create_task(_read(window, terminal))
    ending = asyncio.create_task(window.ending.wait())
    try:
        await asyncio.wait({watching, reading, ending}, return_when=asyncio.FIRST_COMPLETED)
        for task in (watching, reading):
            if task.done():
                task.result()
        if not isinstance(terminal, Keyboard) and not ending.done():
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


async def _read(window: ChatWindow, terminal: Input) -> None:
    while (text := await terminal.read()) is not None:
        if text.strip():
            await window.enter(answer_for(text, window.question))
