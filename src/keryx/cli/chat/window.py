"""The chat of one terminal: accept the person's lines, and show each change of the conversation."""

import asyncio
import signal
from dataclasses import replace
from typing import Final, Literal

from keryx.cli.chat.terminal_io import Input
from keryx.cli.chat.worker import TerminalWorker, accept_line
from keryx.cli.waiting import wait_for_first
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.turns.views.terminal import (
    OpenQuestion,
    TerminalView,
    ViewCursor,
    first_cursor,
    show_terminal,
)
from keryx.core.turns.views.terminal_session import LocalChat, find_outcome, find_title
from keryx.core.values.turn_states import TurnId
from keryx.errors import InvalidValue, NotAllowed, StoreUnavailable
from keryx.gateway.runtime.runtime import Runtime
from keryx.platforms.terminal.conversation_display import ConversationDisplay
from keryx.platforms.terminal.screen import Screen

LOOK_SECONDS: Final = 1.0
"""How long the window waits for a change before it reads the store again."""


class ChatWindow:
    """Accepts the lines of one terminal, and shows its conversation."""

    def __init__(self, runtime: Runtime, screen: Screen) -> None:
        self._runtime = runtime
        self.screen = screen
        self.chat = LocalChat(source=LOCAL_CLI, settings=runtime.settings)
        self.display = ConversationDisplay(screen, self.chat)
        self.ending = asyncio.Event()
        self.ended_by: signal.Signals | None = None
        self._leaving: Literal["when at rest", "now"] | None = None
        self._cursor = ViewCursor(after=0)
        self._view: TerminalView | None = None
        self._woken = asyncio.Event()
        self._listening: tuple[str, asyncio.Task[None]] | None = None
        self._stopping: asyncio.Task[bool] | None = None

    async def begin(self) -> None:
        """Read the cursor: everything after it is new."""
        self._cursor = await self._runtime.database.read(lambda tx: first_cursor(tx, self.chat))
        self.display.seen.update(self._cursor.seen)

    async def enter(self, text: str) -> bool:
        """Accept a message or a command. Return False if the message is refused or the command is declined."""
        ref = self._runtime.ids.token()
        self.display.expect(ref)
        try:
            accepted = await accept_line(self._runtime, self.chat, text, ref=ref)
        except (InvalidValue, NotAllowed) as error:
            self.screen.note(str(error))
            return False
        return accepted.declined is None

    def interrupt(self) -> bool:
        """Stop the running turn. Return whether a turn was running."""
        # Live text arrives before the next view of the store shows its turn.
        if self.display.turn.answer.turn_id is None and (self._view is None or self._view.turn is None):
            return False
        if self._stopping is None or self._stopping.done():
            self._stopping = asyncio.create_task(self.enter("/stop"))
        return True

    @property
    def question(self) -> OpenQuestion | None:
        """The open question that is on the screen."""
        return self.display.question(self._view)

    @property
    def status(self) -> str:
        """The status line."""
        return " Ready." if self._view is None else f" {self.display.turn.status(self._view)}"

    async def watch(self, worker: TerminalWorker, keyboard: Input) -> None:
        """Show every change and let the worker act on it, until everything is finished after ``leave``."""
        database = self._runtime.database
        while True:
            since = database.change_no
            self._woken.clear()
            # Read this before the view: a view that was read before the input ended may lack the last line.
            leaving = self._leaving
            try:
                view = await self._show_view(records=worker.records)
                await worker.act_on(view)
            except StoreUnavailable as error:
                self.screen.note(f"The store is unavailable: {error}")
                await self._runtime.sleep(LOOK_SECONDS)
                continue
            keyboard.refresh()
            keyboard.redraw()
            is_recorded = not (worker.records and view.unfinished)
            if is_recorded and (leaving == "now" or (leaving == "when at rest" and view.is_at_rest)):
                return
            changed = database.changed(since=since, timeout_seconds=LOOK_SECONDS)
            await wait_for_first(changed, self._woken.wait())

    def end(self, number: signal.Signals) -> None:
        """End the chat because of a signal."""
        self.ended_by = number
        self.ending.set()

    def leave(self, *, hurried: bool) -> None:
        """End ``watch`` when all deliveries are recorded; unless ``hurried``, also wait for all answers."""
        self._leaving = "now" if hurried else "when at rest"
        self._woken.set()

    def close(self) -> None:
        """Show nothing more."""
        self.display.close()
        if self._listening is not None:
            self._listening[1].cancel()

    async def show_resume_command(self) -> None:
        """Show the command that resumes the conversation."""
        session_id = None if self._view is None else self._view.session_id
        if self._view is None or session_id is None:
            return
        if self._view.queued:
            self.screen.note("Queued messages are answered at the next start, or by a gateway.")
        title = await self._runtime.database.read(lambda tx: find_title(tx, session_id))
        suffix = f" ({title})" if title else ""
        self.screen.note(f"To continue: keryx chat --resume {session_id}{suffix}")

    async def _show_view(self, *, records: bool) -> TerminalView:
        chat, cursor = self.chat, replace(self._cursor, seen=frozenset(self.display.seen))
        answering = self.display.turn.answer.turn_ids
        # In one transaction: if a turn has ended, its answer is among the deliveries.
        view, outcomes = await self._runtime.database.read(
            lambda tx: (
                show_terminal(tx, chat, cursor),
                {turn_id: find_outcome(tx, TurnId(turn_id)) for turn_id in answering},
            )
        )
        self._cursor, self._view = view.cursor, view
        if view.session_id is not None:
            self._listen_to(view.session_id)
        self.display.show(view, outcomes, troubles=self._runtime.troubles(), records=records)
        return view

    def _listen_to(self, session_id: str) -> None:
        """Show the live text of this process's turns in a session."""
        if self._listening is not None:
            if self._listening[0] == session_id:
                return
            self._listening[1].cancel()
        self._listening = (session_id, asyncio.create_task(self._listen(session_id)))

    async def _listen(self, session_id: str) -> None:
        async with self._runtime.live.watch(session_id) as deltas:
            while True:
                self.display.turn.add(await deltas.get())
                self.screen.redraw()
