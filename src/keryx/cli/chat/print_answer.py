"""Print the answer to one question, for scripts: ``keryx --print "…"``, or the question on standard input.

The question has its own session in its own chat, which ends with the answer, so that no terminal shows it. Standard
output gets only the answer; standard error gets the reason for a delay. No terminal library is loaded.
"""

import asyncio
import signal
import sys
from dataclasses import replace
from typing import Final

from keryx.agents.agent import Agent
from keryx.cli.chat.terminal_io import drop_output
from keryx.cli.chat.worker import TerminalWorker, accept_line
from keryx.cli.waiting import BY_SIGNAL, on_signals, wait_for_first
from keryx.clock import SECOND
from keryx.core.conversations.rules.message import text_of
from keryx.core.conversations.rules.source import one_shot_source
from keryx.core.turns.transactions.accept_message import Accepted
from keryx.core.turns.transactions.cancel_item import cancel_item
from keryx.core.turns.views.terminal import TerminalView, ViewCursor, first_cursor, show_terminal
from keryx.core.turns.views.terminal_rows import ShownDelivery
from keryx.core.turns.views.terminal_session import LocalChat, find_item
from keryx.errors import InvalidValue, NotAllowed
from keryx.gateway.runtime.runtime import Runtime
from keryx.platforms.terminal.adapter import TerminalAdapter
from keryx.platforms.terminal.question import ask
from keryx.tools.tool import Toolbox

LOOK_SECONDS: Final = 1.0
STOP_SECONDS: Final = 5.0
"""How long to wait for a stopped answer to end. After that, the process that runs the turn ends it alone."""
NEEDS_PERSON: Final = 3
"""The exit code if a person must answer a question first."""
NOT_ANSWERED: Final = {"failed": "The turn failed: {}", "cancelled": "The turn was stopped: {}"}


async def print_answer(
    runtime: Runtime, agent: Agent, toolbox: Toolbox, text: str, *, resume: str | None = None
) -> int:
    """Print the answer to ``text`` and return 0, or print why there is none and return 1 or ``NEEDS_PERSON``.

    Configured parts that do not work are named on standard error, too. SIGINT and SIGTERM stop the answer; the exit
    code is then the usual one for the signal.
    """
    # Asking for a title would delay the exit.
    runtime = replace(runtime, settings=replace(runtime.settings, titles=False))
    question = _Question(
        runtime, LocalChat(source=one_shot_source(runtime.ids.token()), settings=runtime.settings)
    )
    adapter = TerminalAdapter(question.chat.source.account, shown=_shown_at_once)
    with on_signals(question.stop, signal.SIGINT, signal.SIGTERM):
        async with TerminalWorker(runtime, agent, toolbox, chat=question.chat, adapter=adapter) as worker:
            try:
                answer = await question.ask(worker, text, resume=resume)
            except (InvalidValue, NotAllowed, _NoAnswer) as reason:
                print(f"keryx: {reason}", file=sys.stderr)
                return reason.code if isinstance(reason, _NoAnswer) else 1
            finally:
                for trouble in runtime.troubles():
                    print(f"keryx: {trouble}", file=sys.stderr)
    return _print(answer)


def _print(answer: str) -> int:
    try:
        print(answer, flush=True)
    except OSError as error:
        drop_output(sys.stdout)
        print(f"keryx: The answer could not be written: {error.strerror}.", file=sys.stderr)
        return 1
    return 0


class _NoAnswer(Exception):
    """Raised with a reason for people when there is no answer; ``code`` is the exit code."""

    def __init__(self, reason: str, *, code: int = 1) -> None:
        super().__init__(reason)
        self.code = code


async def _shown_at_once(_key: str) -> bool:
    return True


class _Question:
    """One message, and the wait for its answer."""

    def __init__(self, runtime: Runtime, chat: LocalChat) -> None:
        self._runtime = runtime
        self.chat = chat
        self._cursor = ViewCursor(after=0)
        self._trouble: str | None = None
        self._signal: int | None = None
        self._signalled = asyncio.Event()

    def stop(self, number: int) -> None:
        """Stop the answer because of a signal."""
        self._signal = number
        self._signalled.set()

    async def ask(self, worker: TerminalWorker, text: str, *, resume: str | None) -> str:
        """Return the answer, or raise ``_NoAnswer``, after every delivery to this chat is recorded as sent."""
        self._cursor = await self._runtime.database.read(lambda tx: first_cursor(tx, self.chat))
        try:
            if resume is not None:
                await self._resume(resume)
            accepted = await self._accept(text)
            # For a command that begins a turn, the answer is that of the turn.
            return await self._answer(worker, accepted.queued or accepted.inbox_id)
        finally:
            await self._finish(worker)

    async def _resume(self, name: str) -> None:
        await self._accept(f"/resume {name}")
        chat, cursor = self.chat, self._cursor
        view = await self._runtime.database.read(lambda tx: show_terminal(tx, chat, cursor))
        self._cursor = replace(cursor, seen=cursor.seen | {each.id for each in view.deliveries})

    async def _accept(self, text: str) -> Accepted:
        accepted = await accept_line(self._runtime, self.chat, text, ref=self._runtime.ids.token())
        if accepted.declined is not None:
            raise _NoAnswer(accepted.declined)
        return accepted

    async def _answer(self, worker: TerminalWorker, inbox_id: int) -> str:
        database = self._runtime.database
        while True:
            change = database.change_no
            item = await database.read(lambda tx: find_item(tx, inbox_id))
            view = await self._look(worker)
            if item.fate is not None and item.fate in NOT_ANSWERED:
                raise _NoAnswer(NOT_ANSWERED[item.fate].format(item.fate_note))
            if item.fate is not None:
                return _texts(view.deliveries, turn_id=item.turn_id)
            if self._signal is not None:
                await self._stop(worker, inbox_id, BY_SIGNAL + self._signal)
            if view.turn is not None and view.turn.state == "waiting":
                zone = self.chat.settings.reset.default.zone
                asked = "" if view.turn.question is None else f" {ask(view.turn.question, zone=zone)}"
                raise _NoAnswer(
                    f"A person must answer first.{asked}\n"
                    f"To answer and continue: keryx chat --resume {item.session_id}",
                    code=NEEDS_PERSON,
                )
            changed = database.changed(since=change, timeout_seconds=LOOK_SECONDS)
            await wait_for_first(changed, self._signalled.wait())

    async def _stop(self, worker: TerminalWorker, inbox_id: int, code: int) -> None:
        """Stop the answer, wait until its turn has ended, and raise ``_NoAnswer``."""
        runtime = self._runtime
        await runtime.write_with_retry(
            lambda tx: cancel_item(tx, inbox_id, holder=runtime.ids.token()), what="the stop"
        )
        until = runtime.clock.monotonic() + int(STOP_SECONDS * SECOND)
        while runtime.clock.monotonic() < until:
            change = runtime.database.change_no
            item = await runtime.database.read(lambda tx: find_item(tx, inbox_id))
            if item.fate is not None:
                break
            await self._look(worker)
            await runtime.database.changed(since=change, timeout_seconds=LOOK_SECONDS)
        raise _NoAnswer("Stopped.", code=code)

    async def _finish(self, worker: TerminalWorker) -> None:
        """Wait until the deliveries to this chat are recorded as sent: no other process records them."""
        database = self._runtime.database
        while True:
            change = database.change_no
            view = await self._look(worker)
            if not view.unfinished or not worker.records:
                return
            await database.changed(since=change, timeout_seconds=LOOK_SECONDS)

    async def _look(self, worker: TerminalWorker) -> TerminalView:
        chat, cursor = self.chat, self._cursor
        view = await self._runtime.database.read(lambda tx: show_terminal(tx, chat, cursor))
        await worker.act_on(view)
        if view.trouble not in (None, self._trouble):
            print(f"keryx: {view.trouble}", file=sys.stderr, flush=True)
        self._trouble = view.trouble
        return view


def _texts(deliveries: tuple[ShownDelivery, ...], *, turn_id: int | None) -> str:
    """Return the texts of one turn, or, for None, the reply to a command."""
    return "\n".join(text_of(each.parts) for each in deliveries if each.turn_id == turn_id)
