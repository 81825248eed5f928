"""One terminal's window on a conversation: it accepts the person's lines and shows each change of the store."""

import asyncio
import signal
from dataclasses import replace
from typing import Final, Literal

from keryx.cli.chat.input import Input
from keryx.cli.chat.worker import TerminalWorker
from keryx.cli.waiting import first_of
from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.people.rules.access import Refused
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.transactions.accept_message import Accepted, accept_message
from keryx.core.turns.views.terminal import (
    OpenQuestion,
    TerminalView,
    ViewCursor,
    first_cursor,
    show_terminal,
)
from keryx.core.turns.views.terminal_chat import LocalChat
from keryx.core.turns.views.terminal_turns import find_outcome, find_title
from keryx.core.values.turn_states import TurnId
from keryx.errors import InvalidValue, StoreUnavailable
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
        """The signal that ended the chat, if one did."""
        self._leaving: Literal["when at rest", "now"] | None = None
        self._cursor = ViewCursor(after=0)
        self._view: TerminalView | None = None
        self._woken = asyncio.Event()
        self._listening: tuple[str, asyncio.Task[None]] | None = None
        self._stopping: asyncio.Task[bool] | None = None

    async def begin(self) -> None:
        """Read the cursor after which everything is new."""
        self._cursor = await self._runtime.database.read(lambda tx: first_cursor(tx, self.chat))
        self.display.seen.update(self._cursor.seen)

    async def say(self, text: str) -> bool:
        """Accept a line, a message or a command; return whether it was accepted, and a command carried out."""
        runtime = self._runtime
        inbound = Inbound(source=self.chat.source, ref=runtime.ids.token(), parts=(TextPart(text=text),))
        self.display.expect(inbound.ref)
        try:
            outcome = await runtime.insist(
                lambda tx: accept_message(
                    tx, inbound, settings=runtime.settings, ids=runtime.ids, commands=runtime.commands
                ),
                what="the terminal",
            )
        except InvalidValue as error:
            self.screen.note(str(error))
            return False
        if isinstance(outcome, Refused):
            self.screen.note("That was not accepted: the owner of this profile is blocked.")
            return False
        return isinstance(outcome, Accepted) and outcome.declined is None

    def interrupt(self) -> bool:
        """Stop the running turn, if there is one; return whether there is."""
        # Live text arrives before the next view of the store shows its turn.
        if self.display.turn.answer.turn_id is None and (self._view is None or self._view.turn is None):
            return False
        if self._stopping is None or self._stopping.done():
            self._stopping = asyncio.create_task(self.say("/stop"))
        return True

    @property
    def question(self) -> OpenQuestion | None:
        """The question on the screen that waits for the person's answer."""
        return self.display.question(self._view)

    @property
    def status(self) -> str:
        """The status line."""
        return " Ready." if self._view is None else f" {self.display.turn.status(self._view)}"

    async def watch(self, worker: TerminalWorker, keyboard: Input) -> None:
        """Show every change and let the worker act on it, until all is done after ``leave``."""
        database = self._runtime.database
        while True:
            since = database.change_no
            self._woken.clear()
            # Read before the view: a view that began before the input ended may lack the last line.
            leaving = self._leaving
            try:
                view = await self._show_view(records=worker.records)
                await worker.act_on(view)
            except StoreUnavailable as error:
                self.screen.note(f"The store is unavailable: {error}")
                await self._runtime.pace.sleep(LOOK_SECONDS)
                continue
            keyboard.refresh()
            keyboard.redraw()
            is_recorded = not (worker.records and view.unfinished)
            if is_recorded and (leaving == "now" or (leaving == "when at rest" and view.is_at_rest)):
                return
            await first_of(database.changed(since=since, timeout_seconds=LOOK_SECONDS), self._woken.wait())

    def end(self, number: signal.Signals) -> None:
        """End the chat because of a signal."""
        self.ended_by = number
        self.ending.set()

    def leave(self, *, hurried: bool) -> None:
        """Watch until everything is shown and recorded; unless ``hurried``, also until everything is answered."""
        self._leaving = "now" if hurried else "when at rest"
        self._woken.set()

    def close(self) -> None:
        """Show nothing more."""
        self.display.close()
        if self._listening is not None:
            self._listening[1].cancel()

    async def say_how_to_go_on(self) -> None:
        """Show the command that resumes the conversation."""
        session_id = None if self._view is None else self._view.session_id
        if self._view is None or session_id is None:
            return
        if self._view.queued:
            self.screen.note("Unanswered messages are answered at the next start, or by a gateway.")
        title = await self._runtime.database.read(lambda tx: find_title(tx, session_id))
        named = f" ({title})" if title else ""
        self.screen.note(f"To go on: keryx chat --resume {session_id}{named}")

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
                self.display.turn.hear(await deltas.get())
                self.screen.redraw()
