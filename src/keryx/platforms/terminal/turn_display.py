"""Show the running turn on a terminal: its text, its calls, and its status.

Finished text and calls are written once and stay. The rest is drawn again whenever it changes.
"""

from typing import Final

from keryx.clock import SECOND
from keryx.core.approvals.rules.approval import ASK_USER
from keryx.core.turns.rules.program_calls import NAME_PREFIX, PERMISSION
from keryx.core.turns.views.terminal import CurrentTurn, TerminalView
from keryx.core.turns.views.terminal_rows import ShownCall
from keryx.core.values.json_value import JsonValue, leaves
from keryx.live import Delta
from keryx.platforms.terminal.answer_text import GrowingAnswer
from keryx.platforms.terminal.question import offer
from keryx.platforms.terminal.screen import Screen

MAIN_ARGUMENTS: Final = ("command", "title", "path", "url", "query", "pattern")
"""The arguments that describe a call best. A call without any of them is shown with its first text."""
SHOWN_MAX: Final = 500
"""Wider than any screen."""
QUESTIONS: Final = (ASK_USER, PERMISSION)
"""Calls that only ask a question. The question is shown instead."""


class TurnDisplay:
    """Shows the turns of a conversation."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.answer = GrowingAnswer(screen.answer)
        self._begun: set[tuple[str, int, str]] = set()
        self._ended: set[tuple[str, int, str]] = set()
        self._running: list[str] = []
        self._program_call: Delta | None = None
        """A call of a program that answers as agent. The store has it only after its end."""
        self._thinking: int | None = None

    def add(self, delta: Delta) -> None:
        """Take a live piece of a turn's text, thinking or calls."""
        self._program_call = delta if delta.kind == "call" else None
        self._thinking = delta.turn_id if delta.kind == "thinking" else None
        if delta.kind == "text":
            self.answer.add(delta.turn_id, after=delta.after, offset=delta.offset, text=delta.text)

    def show_calls(self, view: TerminalView) -> None:
        """Show the calls of a view, each after the text before it and with its outcome."""
        for call in view.calls:
            key = (call.session_id, call.call_seq, call.call_id)
            if key not in self._begun:
                self._program_call = None
                text = call.text_before if self._is_first(call) else ""
                self.answer.end_step(call.turn_id, text, seq=call.call_seq)
                self._begun.add(key)
            if call.ended_at is not None and key not in self._ended:
                self._ended.add(key)
                if _is_shown(call):
                    self._screen.call(call_line(call.name, call.arguments), call_ending(call))
        if self._program_call is not None and _has_ended(self._program_call, view):
            self._program_call = None
        self._running = [
            call_line(call.name, call.arguments)
            for call in view.calls
            if call.ended_at is None and _is_shown(call) and view.turn and call.turn_id == view.turn.id
        ]

    def status(self, view: TerminalView) -> str:
        """Return the status line of the conversation."""
        if view.turn is None and not view.queued:
            return "Ready."
        queued = f" · {view.queued} waiting" if view.queued else ""
        if view.turn is None:
            return f"{view.trouble or 'Waiting'}{queued}"
        if view.turn.state == "waiting":
            return f"{offer(view.turn.question, queued=view.queued)}{queued}"
        return f"{view.trouble or self._activity(view.turn)}{queued} · Ctrl-C stops"

    def draw(self, columns: int, rows: int) -> list[str]:
        """Return the unfinished text and the running calls, in lines for the screen."""
        running = [*self._running, *([] if self._program_call is None else [self._program_call.text])]
        return self._screen.draw(self.answer.unfinished, running, columns=columns, rows=rows)

    def _activity(self, turn: CurrentTurn) -> str:
        if self._running or self._program_call is not None:
            return "Working …"
        is_writing = bool(turn.text) or self.answer.turn_id == turn.id
        return "Writing …" if is_writing and self._thinking != turn.id else "Thinking …"

    def _is_first(self, call: ShownCall) -> bool:
        """Return whether this is the first call of its message. The text before the calls is shown with it."""
        return all(each[:2] != (call.session_id, call.call_seq) for each in self._begun)


def call_line(name: str, arguments: JsonValue) -> str:
    """Return a call in one line, with control characters escaped."""
    given = arguments if isinstance(arguments, dict) else {}
    named = (value for key in MAIN_ARGUMENTS if isinstance(value := given.get(key), str))
    texts = (text for value in given.values() for text in leaves(value))
    what = next(named, None) or next(texts, "")
    line = f"{name}: {what[:SHOWN_MAX]}" if what else name
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


def call_ending(call: ShownCall) -> str:
    """Return the outcome and the duration of a call. The duration of a program's own call is not known."""
    took = None if call.name.startswith(NAME_PREFIX) else call.took
    seconds = None if took is None else f"{took / SECOND:.1f} s"
    how = "interrupted" if call.state == "unknown" else "failed" if call.has_failed else None
    return ", ".join(filter(None, (how, seconds)))


def _has_ended(call: Delta, view: TerminalView) -> bool:
    """Return whether the turn of a program's own call has ended. A view may be older than the live pieces."""
    if view.cursor.in_session is None or view.cursor.in_session[0] != call.session_id:
        return view.session_id != call.session_id
    return view.cursor.in_session[2] >= call.turn_id


def _is_shown(call: ShownCall) -> bool:
    return call.has_begun and call.name not in QUESTIONS
