"""The outbox: the one way out. A row owns one visible message."""

from typing import NamedTuple, TypedDict, Unpack

from keryx.clock import Micros
from keryx.core.conversations.rules.message import Part, decode_parts, encode_parts
from keryx.core.deliveries.rules.delivery import DeliveryKind, DeliveryState, NextDelivery
from keryx.core.deliveries.rules.route import Address
from keryx.errors import NotFound
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


class Delivery(NamedTuple):
    """A row of the table."""

    id: int
    session_id: str | None
    turn_id: int | None
    kind: DeliveryKind
    state: DeliveryState
    platform: str
    account: str
    chat_id: str
    thread_id: str | None
    address: str
    reply_to: str | None
    body: str
    idempotency_key: str
    platform_message_id: str | None
    attempts: int
    due_at: Micros
    claimed_by: str | None
    claim_epoch: int | None
    maybe_repeated_at: Micros | None
    error: str | None
    held_at: Micros | None
    sent_pieces: int

    @property
    def to(self) -> Address:
        """The address of the message."""
        return Address.from_columns(self.platform, self.account, self.chat_id, self.thread_id)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the message."""
        return decode_parts(self.body)


class DeliveryDetails(TypedDict, total=False):
    """Where a delivery belongs. ``kind`` is a notice by default."""

    kind: DeliveryKind
    session_id: str | None
    turn_id: int
    reply_to: str | None


def add_delivery(
    tx: Tx, parts: tuple[Part, ...], *, to: Address, key: str, **details: Unpack[DeliveryDetails]
) -> int | None:
    """Queue a message and return its id; None if this turn has already replied to that address."""
    found: int | None = tx.value(
        "outbox.add",
        session_id=details.get("session_id"),
        turn_id=details.get("turn_id"),
        kind=details.get("kind", "notice"),
        reply_to=details.get("reply_to"),
        parts=encode_parts(parts),
        idempotency_key=key,
        address=str(to),
        **to.columns(),
    )
    return found


def is_queued(tx: ReadTx, *, turn_id: int, key: str) -> bool:
    """Return whether a turn has queued a delivery under a key."""
    return tx.exists("outbox.find_of_key", turn_id=turn_id, idempotency_key=key)


def add_preview(
    tx: Tx, *, to: Address, key: str, session_id: str, turn_id: int, reply_to: str | None
) -> None:
    """Add the preview row of a turn's reply, unless the turn has one at the address."""
    tx.run(
        "outbox.add_preview",
        session_id=session_id,
        turn_id=turn_id,
        reply_to=reply_to,
        idempotency_key=key,
        address=str(to),
        **to.columns(),
    )


def has_waiting(tx: ReadTx, address: Address) -> bool:
    """Return whether a delivery to an address is unfinished."""
    return tx.exists("outbox.has_waiting", address=str(address))


def find_preview(tx: ReadTx, turn_id: int) -> Delivery | None:
    """Return the preview row of a turn's reply, or None."""
    return tx.one(Delivery, "outbox.find_preview", turn_id=turn_id)


def begin_preview(tx: Tx, outbox_id: int) -> None:
    """Record that the preview is about to be sent: until the result is known, it may be shown under an unknown id."""
    tx.run("outbox.begin_preview", outbox_id=outbox_id)


def record_preview(tx: Tx, outbox_id: int, *, message_id: str | None) -> None:
    """Record the id of the preview's message, or with None that the preview is not shown."""
    tx.run("outbox.record_preview", outbox_id=outbox_id, platform_message_id=clean_text(message_id))


def move_previews(tx: Tx, *, session_id: str, turn_id: int) -> None:
    """Let a turn continue the previews of its session's lost turns."""
    tx.run("outbox.move_previews", session_id=session_id, turn_id=turn_id)


def end_previews(tx: Tx, session_id: str, parts: tuple[Part, ...]) -> None:
    """Replace the previews of a session by ``parts``, because no reply will; delete those that were never shown.

    All previews of a session are those of its live turn: a turn takes over the previews of lost ones when it begins.
    """
    tx.run("outbox.drop_previews", session_id=session_id)
    tx.run("outbox.end_previews", session_id=session_id, parts=encode_parts(parts))


def record_piece(tx: Tx, attempt: Delivery, *, message_id: str | None) -> bool:
    """Count a sent piece. Return False if another gateway has claimed the delivery."""
    changed = tx.run(
        "outbox.record_piece",
        outbox_id=attempt.id,
        holder=attempt.claimed_by,
        epoch=attempt.claim_epoch,
        platform_message_id=clean_text(message_id),
    )
    return changed == 1


def get_delivery(tx: ReadTx, outbox_id: int) -> Delivery:
    """Return a delivery by id."""
    row = tx.one(Delivery, "outbox.find", outbox_id=outbox_id)
    if row is None:
        raise NotFound(f"There is no delivery {outbox_id}.")
    return row


def list_due(tx: ReadTx, *, platform: str, account: str, limit: int) -> list[Delivery]:
    """Return the deliveries that an account may send now, oldest first, at most one for each address."""
    return tx.all(Delivery, "outbox.list_due", platform=platform, account=account, limit=limit)


def claim(tx: Tx, outbox_id: int, *, holder: str, epoch: int) -> Delivery | None:
    """Claim a delivery and return its new state; None if another gateway has claimed it."""
    return tx.one(Delivery, "outbox.claim", outbox_id=outbox_id, holder=holder, epoch=epoch)


def list_claimed(tx: ReadTx, *, platform: str, account: str, holder: str, epoch: int) -> list[Delivery]:
    """Return the unfinished deliveries that a gateway claimed under a connector lease."""
    return tx.all(
        Delivery, "outbox.list_claimed", platform=platform, account=account, holder=holder, epoch=epoch
    )


def list_stuck(tx: ReadTx, *, limit: int) -> list[Delivery]:
    """Return deliveries claimed by a gateway that no longer holds the account."""
    return tx.all(Delivery, "outbox.list_stuck", limit=limit)


def record(tx: Tx, attempt: Delivery, after: NextDelivery) -> bool:
    """Record the result of an attempt. Return False if another gateway has the delivery, or it is finished."""
    changed = tx.run(
        "outbox.record",
        outbox_id=attempt.id,
        holder=attempt.claimed_by,
        epoch=attempt.claim_epoch,
        state=after.state,
        due_at=after.due_at,
        platform_message_id=clean_text(after.message_id),
        maybe_repeated=int(after.maybe_repeated),
        error=clean_text(after.reason),
    )
    # Wakes the loop only if it finds a delivery.
    tx.row("outbox.find_next", address=attempt.address)
    return changed == 1


def end_unsent(tx: Tx, address: Address, *, error: str) -> list[tuple[int, str | None]]:
    """End the unfinished deliveries to an address, and return their ids and sessions."""
    return [tuple(row) for row in tx.rows("outbox.end_unsent", address=str(address), error=error)]


def has_sending(tx: ReadTx, session_id: str) -> bool:
    """Return whether a delivery of the session is being sent."""
    return tx.exists("outbox.has_sending", session_id=session_id)


def drop_of_session(tx: Tx, session_id: str) -> None:
    """Delete the deliveries of the session."""
    tx.run("outbox.drop_of_session", session_id=session_id)
