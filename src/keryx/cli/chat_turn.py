"""A turn under way as a terminal shows it: what it says, what it calls, and in a word what it does now.

What is over stands on the screen once and stays; what is not is drawn anew whenever it changes.
"""

from typing import Final

from keryx.agents.acp_words import OWN, PERMISSION
from keryx.cli.chat_question import offer
from keryx.cli.chat_screen import Screen
from keryx.cli.chat_speech import Speech
from keryx.clock import SECOND
from keryx.domain.approval import ASK_USER
from keryx.domain.json_value import JsonValue, leaves
from keryx.live import Delta
from keryx.views.said import Call, HeldTurn, Look

TELLING: Final = ("command", "title", "path", "url", "query", "pattern")
"""The arguments that tell most of a call; where there is none of them, its first text does."""
SHOWN_MAX: Final = 500
"""Wider than any screen."""
QUESTIONS: Final = (ASK_USER, PERMISSION)
"""Calls that only ask: the question is what is seen of them."""


class TurnShow:
    """Shows what the turns of a conversation do."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.speech = Speech(screen.answer)
        self._met: set[tuple[str, int, str]] = set()
        self._over: set[tuple[str, int, str]] = set()
        self._running: list[str] = []
        self._own: Delta | None = None
        """What an agent does itself, which is stored when it is done."""
        self._thinking: int | None = None

    def hear(self, delta: Delta) -> None:
        """Take a piece of what a turn says, thinks or does."""
        self._own = delta if delta.kind == "call" else None
        self._thinking = delta.turn_id if delta.kind == "thinking" else None
        if delta.kind == "text":
            self.speech.add(delta.turn_id, after=delta.after, offset=delta.offset, text=delta.text)

    def see(self, look: Look) -> None:
        """Show what was called: before it what was said before it, and after it how it ended."""
        for call in look.calls:
            key = (call.session_id, call.call_seq, call.call_id)
            if key not in self._met:
                self._own = None
                said = call.said if self._is_first(call) else ""
                self.speech.step(call.turn_id, said, seq=call.call_seq)
                self._met.add(key)
            if call.ended_at is not None and key not in self._over:
                self._over.add(key)
                if _is_shown(call):
                    self._screen.call(told(call.name, call.arguments), ending(call))
        if self._own is not None and _is_over(self._own, look):
            self._own = None
        self._running = [
            told(call.name, call.arguments)
            for call in look.calls
            if call.ended_at is None and _is_shown(call) and look.turn and call.turn_id == look.turn.id
        ]

    def status(self, seen: Look) -> str:
        """Return what goes on in the conversation, in a line."""
        if seen.turn is None and not seen.queued:
            return "Ready."
        queued = f" · {seen.queued} waiting" if seen.queued else ""
        if seen.turn is None:
            return f"{seen.trouble or 'Waiting'}{queued}"
        if seen.turn.state == "waiting":
            return f"{offer(seen.turn.question, queued=seen.queued)}{queued}"
        return f"{seen.trouble or self._doing(seen.turn)}{queued} · Ctrl-C stops"

    def draw(self, columns: int, rows: int) -> list[str]:
        """Return what is not over, in lines for the screen."""
        running = [*self._running, *([] if self._own is None else [self._own.text])]
        return self._screen.draw(self.speech.unfinished, running, columns=columns, rows=rows)

    def _doing(self, turn: HeldTurn) -> str:
        if self._running or self._own is not None:
            return "Working …"
        is_writing = bool(turn.said) or self.speech.turn_id == turn.id
        return "Writing …" if is_writing and self._thinking != turn.id else "Thinking …"

    def _is_first(self, call: Call) -> bool:
        """Say whether no other call of its message was met: what was said before them is said once."""
        return all(each[:2] != (call.session_id, call.call_seq) for each in self._met)


def told(name: str, arguments: JsonValue) -> str:
    """Return a call in a line, in which nothing is hidden."""
    given = arguments if isinstance(arguments, dict) else {}
    named = (value for key in TELLING if isinstance(value := given.get(key), str))
    texts = (text for value in given.values() for text in leaves(value))
    what = next(named, None) or next(texts, "")
    line = f"{name}: {what[:SHOWN_MAX]}" if what else name
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


def ending(call: Call) -> str:
    """Return how a call ended; how long it took is not known of what an agent did itself."""
    seconds = None if call.took is None or call.name.startswith(OWN) else f"{call.took / SECOND:.1f} s"
    how = "interrupted" if call.state == "unknown" else "failed" if call.has_failed else None
    return ", ".join(filter(None, (how, seconds)))


def _is_over(own: Delta, look: Look) -> bool:
    """Say whether the turn has ended in which an agent does something; a look may be older than what was heard."""
    if look.since.heard is None or look.since.heard[0] != own.session_id:
        return look.session_id != own.session_id
    return look.since.heard[2] >= own.turn_id


def _is_shown(call: Call) -> bool:
    return call.has_begun and call.name not in QUESTIONS
