"""Show a conversation on one screen: the news of each view of the store, once and in order."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

from keryx.core.conversations.rules.message import preview_of, text_of
from keryx.core.deliveries.rules.delivery import MAYBE_REPEATED_MARK
from keryx.core.deliveries.rules.route import Address
from keryx.core.turns.views.terminal import OpenQuestion, TerminalView
from keryx.core.turns.views.terminal_rows import ReceivedMessage, ReplyElsewhere, ShownDelivery
from keryx.core.turns.views.terminal_session import LocalChat, TurnOutcome
from keryx.platforms.terminal.question import ask_again
from keryx.platforms.terminal.screen import Screen, whole_text
from keryx.platforms.terminal.turn_display import TurnDisplay

_ENDS: Final = {
    "stopped": "(stopped)",
    "failed": "(failed; Keryx tries again)",
    "lost": "(interrupted; Keryx tries again)",
}


class ConversationDisplay:
    """Shows the deliveries, messages, questions and turns of a conversation, each once."""

    def __init__(self, screen: Screen, chat: LocalChat) -> None:
        self._screen = screen
        self._chat = chat
        self.turn = TurnDisplay(screen)
        self._answer = self.turn.answer
        self.seen: set[int] = set()
        """The deliveries that were shown, or were finished before the chat began."""
        self._typed: set[str] = set()
        self._questions: set[int] = set()
        self._troubles: set[str] = set()
        self._on_screen: dict[str, asyncio.Event] = {}
        self._is_closed = False

    def expect(self, ref: str) -> None:
        """Do not show the message with this reference: the person typed it on this screen."""
        self._typed.add(ref)

    def show(
        self,
        view: TerminalView,
        outcomes: Mapping[int, TurnOutcome],
        *,
        troubles: Sequence[str],
        records: bool,
    ) -> None:
        """Show what is new in a view.

        ``outcomes`` are those of the turns whose text is unfinished on the screen. ``troubles`` name the configured
        parts that do not work. A terminal that ``records`` deliveries shows only claimed ones, so that a delivery is
        marked as possibly repeated if the terminal is killed before the record.
        """
        news = [each for each in view.news if self._is_to_show(each, records=records)]
        # Messages, and deliveries of no turn, led to the calls of the turn. Show them before the calls.
        causes = list(takewhile(lambda each: isinstance(each, ReceivedMessage) or each.turn_id is None, news))
        self._show_all(causes)
        self.turn.show_calls(view)
        self._show_all(news[len(causes) :])
        self._show_question(view)
        self._show_troubles(troubles)
        if view.turn is not None and view.turn.text:
            self._answer.add_stored(view.turn.id, view.turn.text)
        for turn_id, outcome in outcomes.items():
            if turn_id in self._answer.turn_ids:
                self._end_answer(turn_id, outcome, view)

    def question(self, view: TerminalView | None) -> OpenQuestion | None:
        """Return the question that waits for the person's answer, if it is on the screen."""
        question = None if view is None or view.turn is None else view.turn.question
        return question if question is not None and question.id in self._questions else None

    async def shown(self, key: str) -> bool:
        """Return True once the delivery with this key is on the screen, or False if the screen was closed."""
        if not self._is_closed:
            await self._on_screen.setdefault(key, asyncio.Event()).wait()
        return not self._is_closed

    def close(self) -> None:
        """Show nothing more."""
        self._is_closed = True
        for event in self._on_screen.values():
            event.set()

    def _is_to_show(self, each: ReceivedMessage | ShownDelivery | ReplyElsewhere, *, records: bool) -> bool:
        if isinstance(each, ReceivedMessage):
            return each.ref not in self._typed
        return not (isinstance(each, ShownDelivery) and each.state == "ready" and records)

    def _show_all(self, news: Sequence[ReceivedMessage | ShownDelivery | ReplyElsewhere]) -> None:
        for each in news:
            if isinstance(each, ReceivedMessage):
                self._show_received(each)
            elif isinstance(each, ShownDelivery):
                self._show_delivery(each)
            else:
                self._answer.end(each.turn_id, whole_text(each.parts))

    def _show_received(self, message: ReceivedMessage) -> None:
        here = Address.of(message.source) == self._chat.address
        name = message.source.user_name or message.person or "somebody"
        where = "another terminal" if here else f"{name}, {message.source.describe()}"
        self._screen.received(where, text_of(message.parts) or preview_of(message.parts))

    def _show_delivery(self, delivery: ShownDelivery) -> None:
        self.seen.add(delivery.id)
        text = whole_text(delivery.parts)
        if delivery.maybe_repeated_at is not None:
            text = f"{text}\n{MAYBE_REPEATED_MARK}" if text else MAYBE_REPEATED_MARK
        if delivery.turn_id is not None and delivery.kind in ("reply", "copy", "scheduled"):
            self._answer.end(delivery.turn_id, text)
        else:
            if delivery.turn_id is not None:
                self._answer.end(delivery.turn_id, None)  # a question follows the text that led to it
            self._screen.show_text(text)
        self._on_screen.setdefault(delivery.idempotency_key, asyncio.Event()).set()

    def _show_question(self, view: TerminalView) -> None:
        """Show the question of the turn, unless its delivery is on the screen or about to be shown."""
        question = None if view.turn is None else view.turn.question
        if view.turn is None or question is None or question.id in self._questions:
            return
        asked = [each for each in view.deliveries if (each.kind, each.turn_id) == ("question", view.turn.id)]
        if not asked:
            # The question was asked before this terminal began, or elsewhere.
            self._answer.end(view.turn.id, None)
            self._screen.show_text(ask_again(question, zone=self._chat.settings.reset.default.zone))
        if not asked or asked[-1].id in self.seen:
            self._questions.add(question.id)

    def _show_troubles(self, troubles: Sequence[str]) -> None:
        for trouble in troubles:
            if trouble not in self._troubles:
                self._troubles.add(trouble)
                self._screen.note(trouble)

    def _end_answer(self, turn_id: int, outcome: TurnOutcome, view: TerminalView) -> None:
        """Show the rest of the text of a turn that has ended without an answer."""
        if any(each.turn_id == turn_id for each in view.deliveries):
            return  # the answer is about to be shown
        if outcome.state in _ENDS:
            self._answer.end(turn_id, outcome.text if outcome.state == "stopped" else None)
            self._screen.note(_ENDS[outcome.state])
        elif outcome.state == "finished":
            self._answer.end(turn_id, None)
