"""Dispatch: what the store says is to be said is sent, piece by piece, and what became of it is stored.

It knows no agent and no routing. Deliveries of an account are claimed only by the holder of its connector lease, one
unfinished per address, in order; different addresses are served at the same time.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial

from keryx.clock import SECOND, Micros
from keryx.core.conversations.rules.part import TextPart
from keryx.core.deliveries.rules.delivery import (
    ATTEMPTS_MAX,
    MAYBE_REPEATED_MARK,
    Outcome,
    Rejected,
    Sent,
    Unknown,
    retry_at,
)
from keryx.core.deliveries.rules.pieces import Piece, TextPiece
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.transactions.claim_deliveries import (
    ClaimedDelivery,
    claim_deliveries,
    record_delivery,
    record_piece,
)
from keryx.core.deliveries.transactions.show_preview import open_preview, record_preview
from keryx.core.turns.views.pending_work import is_due
from keryx.core.turns.views.turn import final_parts, list_speaking, said_so_far
from keryx.core.values.turn_states import TurnId
from keryx.errors import NotFound, StoreUnavailable
from keryx.gateway.runtime.connector_lease import HeldConnector
from keryx.gateway.runtime.log import concerning, log_of
from keryx.gateway.runtime.metrics import DeliveryOutcome
from keryx.gateway.runtime.rate_limits import RateLimits
from keryx.gateway.runtime.runtime import Runtime, WakeSignal, endlessly
from keryx.gateway.typing_indicator import show_typing
from keryx.platforms.adapter import Adapter, Outgoing
from keryx.store.database import Tx
from keryx.values import dataclass

AT_ONCE_MAX = 20
"""Addresses that are served at the same time."""
LAST_SECONDS = 3.0
"""How long what is due at the end is still begun."""
PREVIEW_MIN = 24
"""Characters from which on it is worth showing what is being written."""
GROWING = " …"
NO_RECEIPT = "no receipt came for a change"
NOT_SURE = "another gateway may have the account by now"
LIMITED = "the platform takes nothing more there for a while"

_log = log_of("dispatch")


@dataclass(slots=True)
class _Showing:
    """What was shown last of a turn that speaks, and when it may be shown again."""

    text: str = ""
    refusals: int = 0
    not_before: Micros = 0


class Dispatcher:
    """Sends what is due through one account, while its connector lease lasts."""

    def __init__(
        self, runtime: Runtime, adapter: Adapter, hold: HeldConnector, *, limits: RateLimits | None = None
    ) -> None:
        """Send under a hold; ``limits`` is what the platform has asked for before, under another one."""
        self._runtime = runtime
        self._adapter = adapter
        self._hold = hold
        self._connector = hold.connector
        self._claiming: asyncio.Task[bool] | None = None
        self._sending: dict[int, asyncio.Task[None]] = {}
        self._given_up: set[int] = set()
        """What was claimed and failed by a fault of the program: nobody knows whether it was sent."""
        self._busy: set[str] = set()
        """Addresses at which a preview is being sent or changed: the reply waits for it."""
        self._bell = WakeSignal(runtime, "deliveries")
        self._showing: dict[TurnId, _Showing] = {}
        self._limits = RateLimits() if limits is None else limits

    async def run(self) -> None:
        """Send until cancelled; what is due or on its way then is sent first."""
        can = self._adapter.capabilities
        beside = [asyncio.create_task(self._bell.listen())]
        if can.edits:
            beside.append(asyncio.create_task(self._run_previews()))
        if can.shows_typing:
            beside.append(asyncio.create_task(show_typing(self._runtime, self._adapter)))
        try:
            while True:
                await self._bell.wait()
                if not await self.send_due():
                    # The account is about to be lost: no use to ask for it at every answer.
                    await self._runtime.pace.sleep(self._runtime.look_seconds)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await self._finish()

    async def send_due(self) -> bool:
        """Begin to send what is due, as much as there is room for; False where nothing of it was to be had."""
        room = AT_ONCE_MAX - len(self._sending)
        if room <= 0:
            return True
        connector = self._connector
        if not await self._runtime.database.read(
            lambda tx: is_due(tx, platform=connector.platform, account=connector.account)
        ):
            return True
        # Whoever is cancelled meanwhile does not leave behind what is claimed and sent by nobody.
        self._claiming = asyncio.create_task(self._claim(room))
        return await asyncio.shield(self._claiming)

    async def _claim(self, room: int) -> bool:
        """Take what is due and begin to send it; False where nothing was to be had."""
        known = self._given_up | self._sending.keys()
        claimed = await self._runtime.insist(
            lambda tx: claim_deliveries(tx, self._connector, limit=room),
            what="dispatch",
            again=lambda tx: claim_deliveries(tx, self._connector, limit=room, known=known),
        )
        for delivery in claimed:
            task = asyncio.create_task(self._deliver(delivery), name=f"keryx-delivery-{delivery.id}")
            self._sending[delivery.id] = task
            task.add_done_callback(partial(self._ended, delivery.id))
        return bool(claimed)

    async def _finish(self) -> None:
        """Send what a turn has said that ended just now, or it would wait for the next start."""
        with suppress(TimeoutError, StoreUnavailable):
            async with asyncio.timeout(LAST_SECONDS):
                if self._claiming is not None:
                    await asyncio.gather(self._claiming, return_exceptions=True)
                while await self.send_due() and self._sending:
                    await asyncio.wait(self._sending.values())
        await asyncio.gather(*self._sending.values(), return_exceptions=True)

    def _ended(self, delivery_id: int, task: "asyncio.Task[None]") -> None:
        if len(self._sending) >= AT_ONCE_MAX:
            # There was no room, so what was due may have been left alone; for its own address its last commit has rung.
            self._bell.ring()
        del self._sending[delivery_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._given_up.add(delivery_id)
            _log.failed("a delivery was given up", error=error, delivery=delivery_id)

    async def _deliver(self, delivery: ClaimedDelivery) -> None:
        with concerning(session=delivery.session_id, turn=delivery.turn_id, delivery=delivery.id):
            await self._send_and_record(delivery)

    async def _send_and_record(self, delivery: ClaimedDelivery) -> None:
        while delivery.address in self._busy:
            await self._runtime.pace.sleep(0.05)
        outcome = await self._send_pieces(delivery)
        connector, deduplicates = self._connector, self._adapter.capabilities.deduplicates
        jitter = (delivery.id * 7919 % 1000) / 1000
        taken = await self._runtime.insist(
            lambda tx: record_delivery(
                tx, connector, delivery.id, outcome, deduplicates=deduplicates, jitter=jitter
            ),
            what="a delivery",
        )
        if not taken:
            self._runtime.metrics.deliveries.count("taken_over")
            _log.warning("the delivery belongs to another gateway by now")
            return
        self._runtime.metrics.deliveries.count(_counted(outcome, attempt=delivery.attempts))
        _log.info("%s on %s", "sent" if isinstance(outcome, Sent) else "not sent", delivery.platform)

    async def _send_pieces(self, delivery: ClaimedDelivery) -> Outcome:
        """Send the pieces that are not sent yet, each recorded before the next; stops at the first that fails."""
        pieces = self._adapter.pieces(delivery.parts)
        if not pieces:
            return Rejected(reason="there is nothing in it that this platform shows", permanent=True)
        outcome: Outcome = Sent(message_id=delivery.platform_message_id)
        for index, piece in enumerate(pieces[delivery.sent_pieces :], delivery.sent_pieces):
            outcome = await self._send(delivery, piece, index)
            if not isinstance(outcome, Sent):
                return outcome
            if index + 1 < len(pieces):
                await self._record_piece(delivery, outcome)
        return outcome

    async def _record_piece(self, delivery: ClaimedDelivery, sent: Sent) -> None:
        await self._runtime.insist(
            lambda tx: record_piece(tx, delivery, message_id=sent.message_id), what="a delivery"
        )

    async def _send(self, delivery: ClaimedDelivery, piece: Piece, index: int) -> Outcome:
        is_first = index == delivery.sent_pieces
        if index == 0 and delivery.kind == "reply" and delivery.attempts == 1:
            waited = self._runtime.clock.now() - delivery.due_at
            self._runtime.metrics.token_to_send.observe(waited / SECOND)
        can = self._adapter.capabilities
        may_be_there = is_first and delivery.maybe_repeated_at is not None
        if may_be_there and not can.deduplicates:
            piece = _marked(piece)
        outgoing = Outgoing(
            to=delivery.to,
            piece=piece,
            key=f"{delivery.idempotency_key}-{index}",
            reply_to=delivery.reply_to if index == 0 else None,
        )
        if not self._hold.is_sure():
            return Rejected(reason=NOT_SURE)
        if left := self._limits.left(delivery.address, now=self._runtime.clock.monotonic()):
            return Rejected(reason=LIMITED, retry_after=left)
        changes = delivery.platform_message_id if index == 0 else None
        outcome = await self._hand_over(outgoing, changes=changes, may_be_there=may_be_there)
        self._limits.note(delivery.address, outcome, now=self._runtime.clock.monotonic())
        return outcome

    async def _hand_over(self, outgoing: Outgoing, *, changes: str | None, may_be_there: bool) -> Outcome:
        """Send one piece, or make it of the message that is there."""
        can = self._adapter.capabilities
        try:
            if changes is not None:
                return await self._change(outgoing, message_id=changes)
            sent = await self._adapter.send(outgoing)
            if may_be_there and can.deduplicates and can.edits and isinstance(sent, Sent) and sent.message_id:
                # What the platform knew already may be a preview: it stays as it is until it is changed.
                return await self._change(outgoing, message_id=sent.message_id)
            return sent
        except Exception as error:  # noqa: BLE001 - an adapter is somebody else's code; see below
            # An adapter that breaks its promise may have sent it.
            _log.failed("the adapter of %s failed", self._adapter.platform, error=error)
            return Unknown()

    async def _change(self, outgoing: Outgoing, *, message_id: str) -> Outcome:
        changed = await self._adapter.edit(outgoing, message_id=message_id)
        # The same change again does no harm.
        return Rejected(reason=NO_RECEIPT) if isinstance(changed, Unknown) else changed

    async def _run_previews(self) -> None:
        """Show what turns are saying, as often as the platform likes."""
        pause = self._adapter.capabilities.edit_every / SECOND
        await endlessly(self._runtime, "previews", self._show_previews, seconds=pause)

    async def _show_previews(self) -> None:
        speaking = await self._runtime.database.read(list_speaking)
        self._showing = {turn.id: self._showing.get(turn.id) or _Showing() for turn in speaking}
        for turn in speaking:
            showing = self._showing[turn.id]
            now = self._runtime.clock.monotonic()
            if turn.origin is None or now < showing.not_before:
                continue
            if self._limits.left(str(Address.of(turn.origin)), now=now):
                continue
            text = await self._runtime.database.read(partial(said_so_far, turn_id=turn.id))
            if len(text) >= PREVIEW_MIN and text != showing.text:
                outcome = await self._preview(turn.id, text)
                self._note_preview(showing, text, outcome)

    def _note_preview(self, showing: _Showing, text: str, outcome: Outcome | None) -> None:
        if isinstance(outcome, Rejected):
            showing.refusals += 1
            now = self._runtime.clock.monotonic()
            showing.not_before = retry_at(showing.refusals, now=now, retry_after=outcome.retry_after)
        else:
            showing.text, showing.refusals = text, 0

    async def _preview(self, turn_id: TurnId, text: str) -> Outcome | None:
        """Show what a turn says so far; returns what became of it, or None where nothing may be shown."""
        connector, ids = self._connector, self._runtime.ids

        def begin(tx: Tx) -> ClaimedDelivery | None:
            try:
                return open_preview(tx, connector, turn_id, ids=ids)
            except NotFound:
                return None

        preview = await self._runtime.write(begin)
        if preview is None or not self._hold.is_sure():
            return None
        self._busy.add(preview.address)
        try:
            pieces = self._adapter.pieces((TextPart(text=text + GROWING),))
            outgoing = Outgoing(
                to=preview.to, piece=pieces[0], key=f"{preview.idempotency_key}-0", reply_to=preview.reply_to
            )
            if preview.platform_message_id is None:
                outcome = await self._adapter.send(outgoing)
                self._limits.note(preview.address, outcome, now=self._runtime.clock.monotonic())
                await self._runtime.insist(
                    lambda tx: record_preview(tx, connector, preview, outcome), what="a preview"
                )
            else:
                outcome = await self._adapter.edit(outgoing, message_id=preview.platform_message_id)
                self._limits.note(preview.address, outcome, now=self._runtime.clock.monotonic())
                if not self._hold.is_sure():
                    await self._restore(outgoing, preview.id, message_id=preview.platform_message_id)
            return outcome
        finally:
            self._busy.discard(preview.address)

    async def _restore(self, outgoing: Outgoing, outbox_id: int, *, message_id: str) -> None:
        """Undo a change that took so long that another gateway may have shown the whole answer meanwhile."""
        parts = await self._runtime.database.read(partial(final_parts, outbox_id=outbox_id))
        if parts:
            first, *_ = self._adapter.pieces(parts)
            await self._adapter.edit(replace(outgoing, piece=first), message_id=message_id)


def _counted(outcome: Outcome, *, attempt: int) -> DeliveryOutcome:
    """Return what an attempt counts as."""
    match outcome:
        case Sent():
            return "sent"
        case Unknown():
            return "unknown"
        case Rejected():
            given_up = outcome.permanent or outcome.dead_address or attempt >= ATTEMPTS_MAX
            return "failed" if given_up else "retried"


def _marked(piece: Piece) -> Piece:
    return TextPiece(text=f"{piece.text}\n{MAYBE_REPEATED_MARK}") if isinstance(piece, TextPiece) else piece
