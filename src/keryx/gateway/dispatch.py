"""Dispatch: what the store says is to be said is sent, piece by piece, and what became of it is stored.

It knows no agent and no routing. Deliveries of an account are claimed only by the holder of its connector lease, one
unfinished per address, in order; different addresses are served at the same time.
"""

import asyncio
import logging
from functools import partial

from keryx.clock import SECOND
from keryx.domain.outbox import MAYBE_REPEATED_MARK, Outcome, Rejected, Sent, Unknown
from keryx.domain.part import TextPart
from keryx.domain.turn import TurnId
from keryx.errors import NotFound
from keryx.gateway.desk import Bell, Desk
from keryx.platforms.adapter import Adapter, Outgoing, Piece, TextPiece
from keryx.store.database import Tx
from keryx.transactions.deliveries import (
    ClaimedDelivery,
    Connector,
    claim_deliveries,
    record_delivery,
    record_piece,
)
from keryx.transactions.preview import open_preview, record_preview
from keryx.views.turn import list_speaking, said_so_far
from keryx.views.work import is_due

AT_ONCE_MAX = 20
"""Addresses that are served at the same time."""
PREVIEW_MIN = 24
"""Characters from which on it is worth showing what is being written."""
GROWING = " …"
NO_RECEIPT = "no receipt came for a change"

_log = logging.getLogger("keryx.gateway.dispatch")


class Dispatcher:
    """Sends what is due through one account, while its connector lease lasts."""

    def __init__(self, desk: Desk, adapter: Adapter, connector: Connector) -> None:
        self._desk = desk
        self._adapter = adapter
        self._connector = connector
        self._sending: dict[int, asyncio.Task[None]] = {}
        self._busy: set[str] = set()
        """Addresses at which a preview is being sent or changed: the reply waits for it."""
        self._bell = Bell(desk)

    async def run(self) -> None:
        """Send until cancelled; what is on its way then is finished first."""
        beside = [asyncio.create_task(self._bell.listen())]
        if self._adapter.capabilities.edits:
            beside.append(asyncio.create_task(self._run_previews()))
        try:
            while True:
                await self._bell.wait()
                await self.send_due()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await asyncio.gather(*self._sending.values(), return_exceptions=True)

    async def send_due(self) -> None:
        """Begin to send what is due, as much as there is room for."""
        room = AT_ONCE_MAX - len(self._sending)
        if room <= 0:
            return
        connector = self._connector
        if not await self._desk.database.read(
            lambda tx: is_due(tx, platform=connector.platform, account=connector.account)
        ):
            return
        claimed = await self._desk.insist(
            lambda tx: claim_deliveries(tx, connector, limit=room), what="dispatch"
        )
        for delivery in claimed:
            task = asyncio.create_task(self._deliver(delivery), name=f"keryx-delivery-{delivery.id}")
            self._sending[delivery.id] = task
            task.add_done_callback(partial(self._ended, delivery.id))

    def _ended(self, delivery_id: int, task: "asyncio.Task[None]") -> None:
        del self._sending[delivery_id]
        self._bell.ring()
        if not task.cancelled() and task.exception() is not None:
            _log.error("delivery %s was given up", delivery_id, exc_info=task.exception())

    async def _deliver(self, delivery: ClaimedDelivery) -> None:
        while delivery.address in self._busy:
            await self._desk.pace.sleep(0.05)
        outcome = await self._send_pieces(delivery)
        connector, deduplicates = self._connector, self._adapter.capabilities.deduplicates
        jitter = (delivery.id * 7919 % 1000) / 1000
        taken = await self._desk.insist(
            lambda tx: record_delivery(
                tx, connector, delivery.id, outcome, deduplicates=deduplicates, jitter=jitter
            ),
            what=f"delivery {delivery.id}",
        )
        if not taken:
            _log.warning("delivery %s belongs to another gateway by now", delivery.id)

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
        await self._desk.insist(
            lambda tx: record_piece(tx, delivery, message_id=sent.message_id), what=f"delivery {delivery.id}"
        )

    async def _send(self, delivery: ClaimedDelivery, piece: Piece, index: int) -> Outcome:
        is_first = index == delivery.sent_pieces
        if is_first and delivery.maybe_repeated_at is not None:
            piece = _marked(piece)
        outgoing = Outgoing(
            to=delivery.to,
            piece=piece,
            key=f"{delivery.idempotency_key}-{index}",
            reply_to=delivery.reply_to if index == 0 else None,
        )
        try:
            if index == 0 and delivery.platform_message_id is not None:
                changed = await self._adapter.edit(outgoing, message_id=delivery.platform_message_id)
                # The same change again does no harm.
                return Rejected(reason=NO_RECEIPT) if isinstance(changed, Unknown) else changed
            return await self._adapter.send(outgoing)
        except Exception:  # noqa: BLE001 - an adapter is somebody else's code; see below
            # An adapter that breaks its promise may have sent it.
            _log.exception("the adapter of %s failed with delivery %s", self._adapter.platform, delivery.id)
            return Unknown()

    async def _run_previews(self) -> None:
        """Show what turns are saying, as often as the platform likes."""
        shown: dict[TurnId, str] = {}
        pause = self._adapter.capabilities.edit_every / SECOND
        while True:
            speaking = await self._desk.database.read(list_speaking)
            shown = {turn.id: shown.get(turn.id, "") for turn in speaking}
            for turn in speaking:
                text = await self._desk.database.read(partial(said_so_far, turn_id=turn.id))
                if len(text) >= PREVIEW_MIN and text != shown[turn.id]:
                    shown[turn.id] = text
                    await self._preview(turn.id, text)
            await self._desk.pace.sleep(pause)

    async def _preview(self, turn_id: TurnId, text: str) -> None:
        connector, ids = self._connector, self._desk.ids

        def begin(tx: Tx) -> ClaimedDelivery | None:
            try:
                return open_preview(tx, connector, turn_id, ids=ids)
            except NotFound:
                return None

        preview = await self._desk.write(begin)
        if preview is None:
            return
        self._busy.add(preview.address)
        try:
            pieces = self._adapter.pieces((TextPart(text=text + GROWING),))
            outgoing = Outgoing(
                to=preview.to, piece=pieces[0], key=f"{preview.idempotency_key}-0", reply_to=preview.reply_to
            )
            if preview.platform_message_id is None:
                outcome = await self._adapter.send(outgoing)
                await self._desk.insist(lambda tx: record_preview(tx, preview, outcome), what="a preview")
            else:
                await self._adapter.edit(outgoing, message_id=preview.platform_message_id)
        finally:
            self._busy.discard(preview.address)


def _marked(piece: Piece) -> Piece:
    return TextPiece(text=f"{piece.text}\n{MAYBE_REPEATED_MARK}") if isinstance(piece, TextPiece) else piece
