"""The outbox: the one way out. A row owns one visible message."""

from typing import NamedTuple, Required, TypedDict, Unpack

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
        """Where it is said."""
        return Address(
            platform=self.platform,
            account=self.account or None,
            chat_id=self.chat_id,
            thread_id=self.thread_id,
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is said."""
        return decode_parts(self.body)


class DeliveryFate(NamedTuple):
    """What became of one delivery so far."""

    id: int
    turn_id: int | None
    kind: DeliveryKind
    state: DeliveryState
    chat_id: str
    idempotency_key: str


class NewDelivery(TypedDict, total=False):
    """What ``add_delivery`` is told."""

    address: Required[Address]
    kind: Required[DeliveryKind]
    parts: Required[tuple[Part, ...]]
    idempotency_key: Required[str]
    session_id: str | None
    turn_id: int
    reply_to: str | None


def add_delivery(tx: Tx, **delivery: Unpack[NewDelivery]) -> int | None:
    """Queue something to say and return its id; None when this turn has replied to that address before."""
    address = delivery["address"]
    found: int | None = tx.value(
        "outbox.add",
        session_id=delivery.get("session_id"),
        turn_id=delivery.get("turn_id"),
        kind=delivery["kind"],
        platform=address.platform,
        account=address.account or "",
        chat_id=address.chat_id,
        thread_id=address.thread_id,
        address=str(address),
        reply_to=delivery.get("reply_to"),
        parts=encode_parts(delivery["parts"]),
        idempotency_key=delivery["idempotency_key"],
    )
    return found


def is_queued(tx: ReadTx, *, turn_id: int, idempotency_key: str) -> bool:
    """Say whether a turn has queued something under a key."""
    return tx.exists("outbox.find_of_key", turn_id=turn_id, idempotency_key=idempotency_key)


def hold_reply(
    tx: Tx, *, address: Address, idempotency_key: str, session_id: str, turn_id: int, reply_to: str | None
) -> None:
    """Make room for the preview of what a turn will reply, unless there is."""
    tx.run(
        "outbox.hold",
        session_id=session_id,
        turn_id=turn_id,
        platform=address.platform,
        account=address.account or "",
        chat_id=address.chat_id,
        thread_id=address.thread_id,
        address=str(address),
        reply_to=reply_to,
        idempotency_key=idempotency_key,
    )


def has_waiting(tx: ReadTx, address: Address) -> bool:
    """Say whether something is on its way to an address."""
    return tx.exists("outbox.has_waiting", address=str(address))


def find_held(tx: ReadTx, turn_id: int) -> Delivery | None:
    """Return the preview of a turn's reply, or None."""
    return tx.one(Delivery, "outbox.find_held", turn_id=turn_id)


def doubt_preview(tx: Tx, outbox_id: int) -> None:
    """Note that the preview is about to be sent: from now on it may be there without our knowing its number."""
    tx.run("outbox.doubt_preview", outbox_id=outbox_id)


def note_preview(tx: Tx, outbox_id: int, *, message_id: str | None) -> None:
    """Note under which number the preview is there, or with None that it certainly is not."""
    tx.run("outbox.note_preview", outbox_id=outbox_id, platform_message_id=clean_text(message_id))


def adopt_held(tx: Tx, *, session_id: str, turn_id: int) -> None:
    """Let a turn go on with what lost ones of its session had shown."""
    tx.run("outbox.adopt_held", session_id=session_id, turn_id=turn_id)


def release_held(tx: Tx, turn_id: int, parts: tuple[Part, ...]) -> None:
    """Let what a turn showed so far stay as ``parts``; what was never shown goes."""
    tx.run("outbox.drop_held", turn_id=turn_id)
    tx.run("outbox.release_held", turn_id=turn_id, parts=encode_parts(parts))


def end_held(tx: Tx, session_id: str, parts: tuple[Part, ...]) -> None:
    """End the previews of lost turns of a session as ``parts``, because no other turn takes them over.

    No turn may live in the session.
    """
    for (turn_id,) in tx.rows("outbox.list_held_turns", session_id=session_id):
        release_held(tx, turn_id, parts)


def note_piece(tx: Tx, attempt: Delivery, *, message_id: str | None) -> bool:
    """Note that one more piece is sent; False when somebody else has the delivery by now."""
    changed = tx.run(
        "outbox.note_piece",
        outbox_id=attempt.id,
        holder=attempt.claimed_by,
        epoch=attempt.claim_epoch,
        platform_message_id=clean_text(message_id),
    )
    return changed == 1


def get_delivery(tx: ReadTx, outbox_id: int) -> Delivery:
    """Return one delivery."""
    row = tx.one(Delivery, "outbox.find", outbox_id=outbox_id)
    if row is None:
        raise NotFound(f"There is no delivery {outbox_id}.")
    return row


def list_due(tx: ReadTx, *, platform: str, account: str, limit: int) -> list[Delivery]:
    """Return what an account may send now, oldest first, at most one for each address."""
    return tx.all(Delivery, "outbox.list_due", platform=platform, account=account, limit=limit)


def claim(tx: Tx, outbox_id: int, *, holder: str, epoch: int) -> Delivery | None:
    """Take a delivery for sending and return it as it is then; None when somebody else has it."""
    return tx.one(Delivery, "outbox.claim", outbox_id=outbox_id, holder=holder, epoch=epoch)


def list_taken(tx: ReadTx, *, platform: str, account: str, holder: str, epoch: int) -> list[Delivery]:
    """Return what a gateway has taken under its present hold of an account and not settled."""
    return tx.all(
        Delivery, "outbox.list_taken", platform=platform, account=account, holder=holder, epoch=epoch
    )


def list_stuck(tx: ReadTx, *, limit: int) -> list[Delivery]:
    """Return deliveries whose sender no longer holds the account."""
    return tx.all(Delivery, "outbox.list_stuck", limit=limit)


def record(tx: Tx, attempt: Delivery, after: NextDelivery) -> bool:
    """Store what an attempt made of a delivery; False when somebody else has it by now, or it is over."""
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
    # Wakes the loop only if it finds something.
    tx.row("outbox.find_next", address=attempt.address)
    return changed == 1


def count_unsettled(tx: ReadTx, *, platform: str) -> int:
    """Count what is to be sent to a platform, or on its way."""
    count: int = tx.value("outbox.count_unsettled", platform=platform)
    return count


def list_fates(tx: ReadTx, *, platform: str, after: int, limit: int) -> list[DeliveryFate]:
    """Return what was to be said on a platform after a delivery, oldest first."""
    return tx.all(DeliveryFate, "outbox.list_fates", platform=platform, after=after, limit=limit)


def end_unsent(tx: Tx, address: Address, *, error: str) -> list[tuple[int, str | None]]:
    """End everything that is still to be said at an address, and return its numbers and sessions."""
    return [
        (number, session_id)
        for number, session_id in tx.rows("outbox.end_unsent", address=str(address), error=error)
    ]


def has_sending(tx: ReadTx, session_id: str) -> bool:
    """Say whether something of the session is on its way to a platform."""
    return tx.exists("outbox.has_sending", session_id=session_id)


def drop_of_session(tx: Tx, session_id: str) -> None:
    """Delete what the session said, or was still to say."""
    tx.run("outbox.drop_of_session", session_id=session_id)
