"""What a running turn has said and thought since its last step: shown at once, stored about once a second."""

from typing import Final

from keryx.clock import SECOND, Micros
from keryx.domain.gauge import Gauge
from keryx.domain.lease import Lease
from keryx.domain.message import NewMessage, TextPart
from keryx.domain.token_count import count_text
from keryx.domain.turn import TurnId
from keryx.errors import StoreUnavailable
from keryx.gateway.desk import Desk
from keryx.live import Delta, DeltaKind
from keryx.transactions.record_step import record_text

TEXT_EVERY: Final[Micros] = SECOND
"""How often what is being said is stored for those who come back, or watch from another node."""


class Saying:
    """The words of one turn before they are a message."""

    def __init__(self, desk: Desk, lease: Lease, turn_id: TurnId, *, after: int) -> None:
        self._desk = desk
        self._lease = lease
        self._turn_id = turn_id
        self._after = after
        self._said = _nothing()
        self._kept = 0
        self._kept_at: Micros = desk.clock.monotonic()

    async def add(self, kind: DeltaKind, text: str) -> None:
        """Show a piece, and store what there is of the answer when it is time."""
        offset = len(self._said[kind])
        self._said[kind] += text
        self._desk.live.publish(
            Delta(
                session_id=self._lease.session_id,
                turn_id=self._turn_id,
                after=self._after,
                kind=kind,
                offset=offset,
                text=text,
            )
        )
        now = self._desk.clock.monotonic()
        if kind == "text" and now - self._kept_at >= TEXT_EVERY:
            self._kept_at = now
            await self._keep()

    def clear(self, *, after: int) -> None:
        """Begin anew after a step, whose message holds what was said before it."""
        self._after = after
        self._said = _nothing()
        self._kept = 0

    def so_far(self, gauge: Gauge | None) -> NewMessage | None:
        """Return what was said, for a turn that ends before its answer; without words where it was only thought.

        No provider reports what an answer used that was broken off, and bills it all the same: so it is estimated, by
        the question as ``gauge`` measured it where a model was asked.
        """
        text, thinking = self._said["text"], self._said["thinking"]
        if not text and not thinking:
            return None
        thought = count_text(thinking) if gauge and thinking else 0
        return NewMessage(
            role="assistant",
            parts=(TextPart(text=text),) if text else (),
            input_tokens=0 if gauge is None else gauge.total,
            output_tokens=0 if gauge is None else thought + count_text(text),
            thinking_tokens=thought,
            finish_reason="interrupted",
        )

    async def _keep(self) -> None:
        start, text = self._kept, self._said["text"][self._kept :]
        if not text:
            return
        lease, turn_id = self._lease, self._turn_id
        try:
            await self._desk.write(lambda tx: record_text(tx, lease, turn_id=turn_id, start=start, text=text))
        except StoreUnavailable:
            return  # it is kept with what comes next
        self._kept += len(text)


def _nothing() -> dict[DeltaKind, str]:
    return {"text": "", "thinking": "", "call": ""}
