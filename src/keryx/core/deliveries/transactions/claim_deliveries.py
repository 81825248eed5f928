"""Claim deliveries and record what became of them: the two short halves of sending.

Only the gateway that holds an account's connector lease claims, one unfinished delivery per address, in order.
"""

from collections.abc import Collection
from typing import TypeAlias

from keryx.core.accounts import tables as connector_leases
from keryx.core.accounts.tables import Connector
from keryx.core.conversations.tables import feed, sessions
from keryx.core.deliveries.rules.delivery import Outcome, after_outcome
from keryx.core.deliveries.tables import addresses, outbox
from keryx.store.database import Tx

ClaimedDelivery: TypeAlias = outbox.Delivery


def claim_deliveries(
    tx: Tx, connector: Connector, *, limit: int = 20, known: Collection[int] | None = None
) -> list[outbox.Delivery]:
    """Return what to send now, marked as being sent; nothing for a gateway that has lost the account.

    ``known`` is given where the answer to an earlier claim was lost: the deliveries that the gateway has heard of. What
    it took besides is returned again, or it would be sent by nobody for as long as the account is held.
    """
    if not connector_leases.is_held(tx, connector):
        return []
    if known is not None:
        taken = outbox.list_taken(
            tx,
            platform=connector.platform,
            account=connector.account,
            holder=connector.holder,
            epoch=connector.epoch,
        )
        unheard_of = [delivery for delivery in taken if delivery.id not in known]
        if unheard_of:
            return unheard_of
    due = outbox.list_due(tx, platform=connector.platform, account=connector.account, limit=limit)
    # No fact for the feed: the sessions of all of them would be locked together.
    claimed = (outbox.claim(tx, each.id, holder=connector.holder, epoch=connector.epoch) for each in due)
    return [delivery for delivery in claimed if delivery is not None]


def record_piece(tx: Tx, attempt: outbox.Delivery, *, message_id: str | None) -> bool:
    """Note that one more piece of a delivery is sent; False for a gateway that no longer owns the attempt."""
    return outbox.note_piece(tx, attempt, message_id=message_id)


def record_delivery(
    tx: Tx, connector: Connector, outbox_id: int, outcome: Outcome, *, deduplicates: bool, jitter: float = 0.0
) -> bool:
    """Store an attempt's outcome; False for a gateway that no longer owns the attempt, whose word is dropped."""
    delivery = outbox.get_delivery(tx, outbox_id)
    if (delivery.claimed_by, delivery.claim_epoch) != (connector.holder, connector.epoch):
        return False
    return settle(tx, delivery, outcome, deduplicates=deduplicates, jitter=jitter)


def settle(
    tx: Tx, attempt: outbox.Delivery, outcome: Outcome, *, deduplicates: bool, jitter: float = 0.0
) -> bool:
    """Let an outcome take effect on a delivery and its address; False when somebody else has settled the attempt."""
    if attempt.session_id is not None:
        sessions.lock_session(tx, attempt.session_id)
    after = after_outcome(
        outcome, attempt=attempt.attempts, now=tx.now, deduplicates=deduplicates, jitter=jitter
    )
    if not outbox.record(tx, attempt, after):
        return False
    if after.address_dead:
        addresses.note_dead(tx, attempt.to, reason=after.reason or "")
    elif after.state == "sent":
        addresses.note_alive(tx, attempt.to)
    if attempt.session_id is not None:
        feed.add_event(tx, attempt.session_id, "delivery", attempt.id)
    return True
