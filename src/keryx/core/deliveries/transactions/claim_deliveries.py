"""Claim deliveries, and record the results of sending them.

Only the gateway that holds an account's connector lease claims, for each address one unfinished delivery, in order.
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
    """Claim due deliveries and return them; claim nothing for a gateway that no longer holds the account.

    If the result of an earlier claim was lost, ``known`` are the deliveries that the gateway knows of. Other deliveries
    that it has claimed are returned again; otherwise they would stay unsent while the gateway holds the account.
    """
    if not connector_leases.is_held(tx, connector):
        return []
    if known is not None:
        claimed = outbox.list_claimed(
            tx,
            platform=connector.platform,
            account=connector.account,
            holder=connector.holder,
            epoch=connector.epoch,
        )
        lost = [delivery for delivery in claimed if delivery.id not in known]
        if lost:
            return lost
    due = outbox.list_due(tx, platform=connector.platform, account=connector.account, limit=limit)
    # No fact for the feed: it would lock the sessions of all these deliveries together.
    found = (outbox.claim(tx, each.id, holder=connector.holder, epoch=connector.epoch) for each in due)
    return [delivery for delivery in found if delivery is not None]


def record_piece(tx: Tx, attempt: outbox.Delivery, *, message_id: str | None) -> bool:
    """Count a sent piece of a delivery. Return False for a gateway that no longer owns the attempt."""
    return outbox.record_piece(tx, attempt, message_id=message_id)


def record_delivery(
    tx: Tx, connector: Connector, outbox_id: int, outcome: Outcome, *, deduplicates: bool, jitter: float = 0.0
) -> bool:
    """Record the outcome of an attempt. If the gateway no longer owns the attempt, record nothing and return False."""
    delivery = outbox.get_delivery(tx, outbox_id)
    if (delivery.claimed_by, delivery.claim_epoch) != (connector.holder, connector.epoch):
        return False
    return settle(tx, delivery, outcome, deduplicates=deduplicates, jitter=jitter)


def settle(
    tx: Tx, attempt: outbox.Delivery, outcome: Outcome, *, deduplicates: bool, jitter: float = 0.0
) -> bool:
    """Apply an outcome to a delivery and its address. Return False if the attempt is settled already."""
    if attempt.session_id is not None:
        sessions.lock_session(tx, attempt.session_id)
    after = after_outcome(
        outcome, attempt=attempt.attempts, now=tx.now, deduplicates=deduplicates, jitter=jitter
    )
    if not outbox.record(tx, attempt, after):
        return False
    if after.address_dead:
        addresses.mark_dead(tx, attempt.to, reason=after.reason or "")
    elif after.state == "sent":
        addresses.mark_alive(tx, attempt.to)
    if attempt.session_id is not None:
        feed.add_event(tx, attempt.session_id, "delivery", attempt.id)
    return True
