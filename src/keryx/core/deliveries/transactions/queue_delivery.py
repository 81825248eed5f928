"""Queue a message together with the fact in the feed that it is queued.

A session's delivery is a fact of the session. A delivery without a session, such as a pairing code, is a fact of a
person.
"""

from typing import Unpack

from keryx.core.conversations.rules.part import Part, TextPart
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import outbox
from keryx.core.deliveries.tables.outbox import DeliveryDetails
from keryx.core.people.rules.person import PersonId
from keryx.ids import Ids
from keryx.store.database import Tx


def queue_delivery(
    tx: Tx,
    content: str | tuple[Part, ...],
    *,
    to: Address,
    key: str,
    told: PersonId | None = None,
    **details: Unpack[DeliveryDetails],
) -> int:
    """Queue a message and return the delivery's id.

    ``key`` is the idempotency key; ``told`` is the person whose feed gets the fact if the delivery has no session.
    """
    parts = (TextPart(text=content),) if isinstance(content, str) else content
    added = outbox.add_delivery(tx, parts, to=to, key=key, **details)
    assert added is not None, "a turn replies once to each address"
    session_id = details.get("session_id")
    if session_id is not None:
        feed.add_event(tx, session_id, "delivery", added)
    elif told is not None:
        feed.add_personal_event(tx, told, "delivery", added)
    return added


def queue_reply(tx: Tx, source: Source, text: str, *, ids: Ids, **details: Unpack[DeliveryDetails]) -> int:
    """Queue an answer of Keryx to a message from ``source``; return the delivery's id."""
    details["reply_to"] = source.message_id
    return queue_delivery(tx, text, to=Address.of(source), key=ids.token(), **details)
