"""Show a reply while the turn writes it: the message of the preview row is edited until the reply is done.

Before the preview is sent, its row records that it may be shown. So a reply after a crash in between is marked as
possibly repeated.
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
    """Return the preview row of a running turn; None if no preview may be shown now.

    If the row has a message id, that message is to be edited; else a message is to be sent.
    """
    turn = turns.get_turn(tx, turn_id)
    if turn.state != "running" or turn.origin is None or turn.purpose != "reply":
        return None
    address = Address.of(turn.origin)
    if (address.platform, address.account or "") != (connector.platform, connector.account):
        return None
    if not connector_leases.is_held(tx, connector) or outbox.has_waiting(tx, address):
        return None  # a preview never overtakes an earlier delivery
    outbox.add_preview(
        tx,
        to=address,
        key=ids.token(),
        session_id=turn.session_id,
        turn_id=turn_id,
        reply_to=turn.origin.message_id,
    )
    preview = outbox.find_preview(tx, turn_id)
    if preview is None or (preview.platform_message_id is None and preview.maybe_repeated_at is not None):
        return None  # the reply is already queued, or a preview may be shown under an unknown id
    outbox.begin_preview(tx, preview.id)
    return preview


def record_preview(tx: Tx, connector: Connector, preview: outbox.Delivery, outcome: Outcome) -> None:
    """Record the result of sending the preview; edits need no record.

    The result of a gateway that has lost the account is dropped: another gateway may be showing the preview.
    """
    if isinstance(outcome, Unknown) or not connector_leases.is_held(tx, connector):
        return
    message_id = outcome.message_id if isinstance(outcome, Sent) else None
    outbox.record_preview(tx, preview.id, message_id=message_id)
