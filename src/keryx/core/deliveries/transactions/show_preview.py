"""Show an answer while it is written: the row that will be the reply, with a message of its own that is changed.

Before the first one is sent, the row says that it may be there; so a crash in between makes the reply a marked
repetition, and never an unmarked one.
"""

from keryx.core.accounts import tables as connector_leases
from keryx.core.accounts.tables import Connector
from keryx.core.deliveries.rules.delivery import Outcome, Sent, Unknown
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import outbox
from keryx.core.turns.tables import turns
from keryx.core.values.turn_states import TurnId
from keryx.ids import Ids
from keryx.store.database import Tx


def open_preview(tx: Tx, connector: Connector, turn_id: TurnId, *, ids: Ids) -> outbox.Delivery | None:
    """Return the row whose message is to show what the turn says so far; None where nothing may be shown.

    A row without a message's number is to be sent, one with it to be changed.
    """
    turn = turns.get_turn(tx, turn_id)
    if turn.state != "running" or turn.origin is None or turn.purpose != "reply":
        return None
    address = Address.of(turn.origin)
    if (address.platform, address.account or "") != (connector.platform, connector.account):
        return None
    if not connector_leases.is_held(tx, connector) or outbox.has_waiting(tx, address):
        return None  # a preview never overtakes what was said before
    outbox.hold_reply(
        tx,
        address=address,
        idempotency_key=ids.token(),
        session_id=turn.session_id,
        turn_id=turn_id,
        reply_to=turn.origin.message_id,
    )
    preview = outbox.find_held(tx, turn_id)
    if preview is None or (preview.platform_message_id is None and preview.maybe_repeated_at is not None):
        return None  # it has its text already, or may be there under a number we do not know
    outbox.doubt_preview(tx, preview.id)
    return preview


def record_preview(tx: Tx, connector: Connector, preview: outbox.Delivery, outcome: Outcome) -> None:
    """Store what became of sending the preview's first form; later changes need no record.

    The word of a gateway that has lost the account is dropped: another one may be showing it by now.
    """
    if isinstance(outcome, Unknown) or not connector_leases.is_held(tx, connector):
        return
    message_id = outcome.message_id if isinstance(outcome, Sent) else None
    outbox.note_preview(tx, preview.id, message_id=message_id)
