"""The text of a running turn since its last step: published at once, stored about once a second."""

from collections import defaultdict
from typing import Final

from keryx.clock import SECOND, Micros
from keryx.core.context.rules.context_usage import ContextUsage
from keryx.core.context.rules.token_count import count_text
from keryx.core.conversations.rules.message import NewMessage, TextPart
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.transactions.record_step import record_text
from keryx.errors import StoreUnavailable
from keryx.gateway.runtime.runtime import Runtime
from keryx.live import Delta, DeltaKind

TEXT_EVERY: Final[Micros] = SECOND
"""How often the text so far is stored, for clients that reconnect or are on another node."""


class TextSoFar:
    """The text of one turn that is in no message yet."""

    def __init__(self, runtime: Runtime, held: TurnLease, *, after: int) -> None:
        self._runtime = runtime
        self._held = held
        self._after = after
        self._texts: defaultdict[DeltaKind, str] = defaultdict(str)
        self._stored = 0
        """How many characters of the answer are stored."""
        self._stored_at: Micros = runtime.clock.monotonic()

    async def add(self, kind: DeltaKind, text: str) -> None:
        """Publish a piece, and store the text of the answer if it is due."""
        offset = len(self._texts[kind])
        self._texts[kind] += text
        self._runtime.live.publish(
            Delta(
                session_id=self._held.session_id,
                turn_id=self._held.turn_id,
                after=self._after,
                kind=kind,
                offset=offset,
                text=text,
            )
        )
        now = self._runtime.clock.monotonic()
        if kind == "text" and now - self._stored_at >= TEXT_EVERY:
            self._stored_at = now
            await self._store()

    def clear(self, *, after: int) -> None:
        """Start again after a step: its message contains the text before it."""
        self._after = after
        self._texts.clear()
        self._stored = 0

    def so_far(self, in_context: ContextUsage | None) -> NewMessage | None:
        """Return the text so far as a message, for a turn that ends without an answer. Thinking alone has no text.

        Providers bill an interrupted answer but do not report its usage. If a model was asked, the usage is estimated,
        from ``in_context`` for the input.
        """
        text, thinking = self._texts["text"], self._texts["thinking"]
        if not text and not thinking:
            return None
        thought = count_text(thinking) if in_context and thinking else 0
        return NewMessage(
            role="assistant",
            parts=(TextPart(text=text),) if text else (),
            input_tokens=0 if in_context is None else in_context.total,
            output_tokens=0 if in_context is None else thought + count_text(text),
            thinking_tokens=thought,
            finish_reason="interrupted",
        )

    async def _store(self) -> None:
        start, text = self._stored, self._texts["text"][self._stored :]
        if not text:
            return
        held = self._held
        try:
            await self._runtime.database.write(lambda tx: record_text(tx, held, start=start, text=text))
        except StoreUnavailable:
            return  # the next piece is stored together with this one
        self._stored += len(text)
