"""Say something: the delivery and the fact in the feed that it is queued, together and nowhere else.

A delivery of a session is a fact of the session. One of no session, as an offer of pairing, is a fact of a person's.
"""

from typing import TypedDict, Unpack

from keryx.core.conversations.rules.part import Part, TextPart
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed
from keryx.core.deliveries.rules.delivery import DeliveryKind
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import outbox
from keryx.core.people.rules.person import PersonId
from keryx.ids import Ids
from keryx.store.database import Tx


class About(TypedDict, total=False):
    """What a delivery belongs to. ``kind`` is a notice unless named, and ``told`` the person who learns of it."""

    kind: DeliveryKind
    session_id: str | None
    turn_id: int
    reply_to: str | None
    told: PersonId


def queue_delivery(
    tx: Tx, said: str | tuple[Part, ...], *, to: Address, key: str, **about: Unpack[About]
) -> int:
    """Queue something to say at an address and return the delivery's id; ``key`` is its idempotency key."""
    session_id = about.get("session_id")
    delivery: outbox.NewDelivery = {
        "address": to,
        "kind": about.get("kind", "notice"),
        "parts": (TextPart(text=said),) if isinstance(said, str) else said,
        "idempotency_key": key,
        "session_id": session_id,
        "reply_to": about.get("reply_to"),
    }
    if "turn_id" in about:
        delivery["turn_id"] = about["turn_id"]
    added = outbox.add_delivery(tx, **delivery)
    assert added is not None, "a turn replies once to each address"
    if session_id is not None:
        feed.add_event(tx, session_id, "delivery", added)
    elif "told" in about:
        feed.add_personal_event(tx, about["told"], "delivery", added)
    return added


def queue_reply(tx: Tx, source: Source, text: str, *, ids: Ids, **about: Unpack[About]) -> int:
    """Queue an answer of Keryx to what came from a source, at its place; return the delivery's id."""
    about["reply_to"] = source.message_id
    return queue_delivery(tx, text, to=Address.of(source), key=ids.token(), **about)
