"""Send the deliveries of an account piece by piece, and store the outcome of each.

The dispatcher knows no agent and no routing. Only the holder of an account's connector lease claims the account's
deliveries: in order, one unfinished per address. Different addresses are served at the same time.
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
from keryx.core.turns.views.pending_work import has_due_deliveries
from keryx.core.turns.views.turn import final_parts, list_speaking, text_so_far
from keryx.core.values.turn_states import TurnId
from keryx.errors import NotFound, StoreUnavailable
from keryx.gateway.runtime.connector_lease import HeldConnector
from keryx.gateway.runtime.log import log_ids, log_of
from keryx.gateway.runtime.metrics import DeliveryOutcome
from keryx.gateway.runtime.runtime import Runtime, WakeSignal, cancel, repeat_forever
from keryx.gateway.typing_indicator import show_typing
from keryx.platforms.adapter import Adapter, Outgoing
from keryx.store.database import Tx
from keryx.values import dataclass

DELIVERIES_MAX = 20
"""How many deliveries, each to another address, are sent at the same time."""
FINISH_SECONDS = 3.0
"""How long the dispatcher still starts due deliveries when it ends."""
PREVIEW_MIN = 24
"""The number of characters from which a preview is shown."""
PREVIEW_SUFFIX = " …"
NO_RECEIPT = "no receipt came for an edit"
LEASE_EXPIRED = "the connector lease may have expired"
LIMITED = "the platform's rate limit for this address still lasts"

_log = log_of("dispatch")


class RateLimits:
    """The rate limits that a platform has announced, per address, in lease time. A reconnect does not lift them."""

    def __init__(self) -> None:
        self._until: dict[str, Micros] = {}

    def note(self, address: str, outcome: Outcome, *, now: Micros) -> None:
        """Remember the ``retry_after`` of a rejected delivery."""
        if isinstance(outcome, Rejected) and outcome.retry_after is not None:
            self._until = {each: until for each, until in self._until.items() if until > now}
            self._until[address] = now + outcome.retry_after

    def left(self, address: str, *, now: Micros) -> Micros:
        """Return how long the address is still limited."""
        return max(0, self._until.get(address, 0) - now)


@dataclass(slots=True)
class _Preview:
    """The last preview of a running turn, and the earliest time for the next."""

    text: str = ""
    refusals: int = 0
    not_before: Micros = 0


class Dispatcher:
    """Sends the due deliveries of one account, while its connector lease lasts."""

    def __init__(
        self, runtime: Runtime, adapter: Adapter, hold: HeldConnector, *, limits: RateLimits | None = None
    ) -> None:
        """Send under a connector lease; ``limits`` are the rate limits that were announced under earlier leases."""
        self._runtime = runtime
        self._adapter = adapter
        self._hold = hold
        self._connector = hold.connector
        self._claiming: asyncio.Task[bool] | None = None
        self._sending: dict[int, asyncio.Task[None]] = {}
        self._failed: set[int] = set()
        """The claimed deliveries that failed because of a bug: it is unknown whether they were sent."""
        self._previewing: set[str] = set()
        """The addresses at which a preview is being sent or edited; a reply waits for it."""
        self._wake_signal = WakeSignal(runtime, "deliveries")
        self._previews: dict[TurnId, _Preview] = {}
        self._limits = RateLimits() if limits is None else limits

    async def run(self) -> None:
        """Send until cancelled; then send the deliveries that are due or under way."""
        can = self._adapter.capabilities
        background = [asyncio.create_task(self._wake_signal.watch_commits())]
        if can.edits:
            previews = repeat_forever(
                self._runtime, "previews", self._show_previews, seconds=can.edit_every / SECOND
            )
            background.append(asyncio.create_task(previews))
        if can.shows_typing:
            background.append(asyncio.create_task(show_typing(self._runtime, self._adapter)))
        try:
            while True:
                await self._wake_signal.wait()
                if not await self.send_due():
                    # The account is about to be lost: do not ask for it at every answer.
                    await self._runtime.sleep(self._runtime.poll_seconds)
        finally:
            await cancel(*background)
            await self._finish()

    async def send_due(self) -> bool:
        """Claim due deliveries and start sending them. Return False if deliveries are due but none could be claimed."""
        room = DELIVERIES_MAX - len(self._sending)
        if room <= 0:
            return True
        connector = self._connector
        if not await self._runtime.database.read(
            lambda tx: has_due_deliveries(tx, platform=connector.platform, account=connector.account)
        ):
            return True
        # Shielded: a claim that was cancelled halfway would leave claimed deliveries that nothing sends.
        self._claiming = asyncio.create_task(self._claim(room))
        return await asyncio.shield(self._claiming)

    async def _claim(self, room: int) -> bool:
        known = self._failed | self._sending.keys()
        claimed = await self._runtime.write_with_retry(
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
        """Send the answers of turns that ended just now; otherwise they would wait for the next start."""
        with suppress(TimeoutError, StoreUnavailable):
            async with asyncio.timeout(FINISH_SECONDS):
                if self._claiming is not None:
                    await asyncio.gather(self._claiming, return_exceptions=True)
                while await self.send_due() and self._sending:
                    await asyncio.wait(self._sending.values())
        await asyncio.gather(*self._sending.values(), return_exceptions=True)

    def _ended(self, delivery_id: int, task: "asyncio.Task[None]") -> None:
        if len(self._sending) >= DELIVERIES_MAX:
            # Deliveries to other addresses may have been left for lack of room. The commit of this delivery has woken
            # the loop for its own address.
            self._wake_signal.set()
        del self._sending[delivery_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed.add(delivery_id)
            _log.failed("a delivery failed because of a bug", error=error, delivery=delivery_id)

    async def _deliver(self, delivery: ClaimedDelivery) -> None:
        metrics = self._runtime.metrics.deliveries
        with log_ids(session=delivery.session_id, turn=delivery.turn_id, delivery=delivery.id):
            while delivery.address in self._previewing:
                await self._runtime.sleep(0.05)
            outcome = await self._send_pieces(delivery)
            connector, deduplicates = self._connector, self._adapter.capabilities.deduplicates
            jitter = (delivery.id * 7919 % 1000) / 1000
            is_ours = await self._runtime.write_with_retry(
                lambda tx: record_delivery(
                    tx, connector, delivery.id, outcome, deduplicates=deduplicates, jitter=jitter
                ),
                what="a delivery",
            )
            if not is_ours:
                metrics["taken_over"] += 1
                _log.warning("another gateway has taken over the delivery")
                return
            metrics[_metric_of(outcome, attempt=delivery.attempts)] += 1
            _log.info("%s on %s", "sent" if isinstance(outcome, Sent) else "not sent", delivery.platform)

    async def _send_pieces(self, delivery: ClaimedDelivery) -> Outcome:
        """Send the remaining pieces, and record each before the next. Stop at the first piece that fails."""
        pieces = self._adapter.pieces(delivery.parts)
        if not pieces:
            return Rejected(reason="the platform shows no part of this message", permanent=True)
        outcome: Outcome = Sent(message_id=delivery.platform_message_id)
        for index, piece in enumerate(pieces[delivery.sent_pieces :], delivery.sent_pieces):
            outcome = await self._send(delivery, piece, index)
            if not isinstance(outcome, Sent):
                return outcome
            if index + 1 < len(pieces):
                record = partial(record_piece, attempt=delivery, message_id=outcome.message_id)
                await self._runtime.write_with_retry(record, what="a delivery")
        return outcome

    async def _send(self, delivery: ClaimedDelivery, piece: Piece, index: int) -> Outcome:
        clock = self._runtime.clock
        if index == 0 and delivery.kind == "reply" and delivery.attempts == 1:
            waited = clock.now() - delivery.due_at
            self._runtime.metrics.token_to_send.observe(waited / SECOND)
        may_repeat = index == delivery.sent_pieces and delivery.maybe_repeated_at is not None
        if may_repeat and not self._adapter.capabilities.deduplicates:
            piece = _mark_repeated(piece)
        outgoing = Outgoing(
            to=delivery.to,
            piece=piece,
            key=f"{delivery.idempotency_key}-{index}",
            reply_to=delivery.reply_to if index == 0 else None,
        )
        if not self._hold.is_valid():
            return Rejected(reason=LEASE_EXPIRED)
        if left := self._limits.left(delivery.address, now=clock.monotonic()):
            return Rejected(reason=LIMITED, retry_after=left)
        message_id = delivery.platform_message_id if index == 0 else None
        outcome = await self._call_adapter(outgoing, message_id=message_id, may_repeat=may_repeat)
        self._limits.note(delivery.address, outcome, now=clock.monotonic())
        return outcome

    async def _call_adapter(self, outgoing: Outgoing, *, message_id: str | None, may_repeat: bool) -> Outcome:
        """Send one piece, or edit the message with ``message_id``."""
        can = self._adapter.capabilities
        try:
            if message_id is not None:
                return await self._edit(outgoing, message_id=message_id)
            sent = await self._adapter.send(outgoing)
            if may_repeat and can.deduplicates and can.edits and isinstance(sent, Sent) and sent.message_id:
                # The platform may have found a preview under this key, and does not change it by itself.
                return await self._edit(outgoing, message_id=sent.message_id)
            return sent
        except Exception as error:  # noqa: BLE001 - an adapter that raises may have sent the message
            _log.failed("the adapter of %s failed", self._adapter.platform, error=error)
            return Unknown()

    async def _edit(self, outgoing: Outgoing, *, message_id: str) -> Outcome:
        edited = await self._adapter.edit(outgoing, message_id=message_id)
        # Repeating an edit does no harm.
        return Rejected(reason=NO_RECEIPT) if isinstance(edited, Unknown) else edited

    async def _show_previews(self) -> None:
        """Send or edit the previews of all running turns whose text has grown."""
        speaking = await self._runtime.database.read(list_speaking)
        self._previews = {turn.id: self._previews.get(turn.id) or _Preview() for turn in speaking}
        for turn in speaking:
            preview, now = self._previews[turn.id], self._runtime.clock.monotonic()
            if turn.origin is None or now < preview.not_before:
                continue
            if self._limits.left(str(Address.of(turn.origin)), now=now):
                continue
            text = await self._runtime.database.read(partial(text_so_far, turn_id=turn.id))
            if len(text) < PREVIEW_MIN or text == preview.text:
                continue
            outcome = await self._show_preview(turn.id, text)
            if isinstance(outcome, Rejected):
                preview.refusals += 1
                now = self._runtime.clock.monotonic()
                preview.not_before = retry_at(preview.refusals, now=now, retry_after=outcome.retry_after)
            else:
                preview.text, preview.refusals = text, 0

    async def _show_preview(self, turn_id: TurnId, text: str) -> Outcome | None:
        """Send or edit the preview of a turn. Return the outcome, or None if no preview is allowed now."""
        connector, runtime = self._connector, self._runtime

        def begin(tx: Tx) -> ClaimedDelivery | None:
            try:
                return open_preview(tx, connector, turn_id, ids=runtime.ids)
            except NotFound:
                return None

        row = await runtime.database.write(begin)
        if row is None or not self._hold.is_valid():
            return None
        self._previewing.add(row.address)
        try:
            [first, *_] = self._adapter.pieces((TextPart(text=text + PREVIEW_SUFFIX),))
            outgoing = Outgoing(to=row.to, piece=first, key=f"{row.idempotency_key}-0", reply_to=row.reply_to)
            if row.platform_message_id is None:
                outcome = await self._adapter.send(outgoing)
            else:
                outcome = await self._adapter.edit(outgoing, message_id=row.platform_message_id)
            self._limits.note(row.address, outcome, now=runtime.clock.monotonic())
            if row.platform_message_id is None:
                await runtime.write_with_retry(
                    lambda tx: record_preview(tx, connector, row, outcome), what="a preview"
                )
            elif not self._hold.is_valid():
                await self._restore(outgoing, row.id, message_id=row.platform_message_id)
            return outcome
        finally:
            self._previewing.discard(row.address)

    async def _restore(self, outgoing: Outgoing, outbox_id: int, *, message_id: str) -> None:
        """Undo an edit that took so long that another gateway may have shown the whole answer before it."""
        parts = await self._runtime.database.read(partial(final_parts, outbox_id=outbox_id))
        if parts:
            first, *_ = self._adapter.pieces(parts)
            await self._adapter.edit(replace(outgoing, piece=first), message_id=message_id)


def _metric_of(outcome: Outcome, *, attempt: int) -> DeliveryOutcome:
    match outcome:
        case Sent():
            return "sent"
        case Unknown():
            return "unknown"
        case Rejected():
            is_final = outcome.permanent or outcome.dead_address or attempt >= ATTEMPTS_MAX
            return "failed" if is_final else "retried"


def _mark_repeated(piece: Piece) -> Piece:
    return TextPiece(text=f"{piece.text}\n{MAYBE_REPEATED_MARK}") if isinstance(piece, TextPiece) else piece
