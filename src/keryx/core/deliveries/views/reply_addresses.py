"""The addresses of a turn's output: its origin, and every surface that shows its conversation."""

from collections.abc import Sequence

from keryx.core.conversations.rules.session_key import is_chat_key
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import session_keys
from keryx.core.deliveries.rules.delivery import DeliveryKind
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import outbox
from keryx.core.turns.tables import turns
from keryx.store.database import ReadTx


def reply_addresses(
    tx: ReadTx, turn: turns.Turn, *, to: Sequence[Address] | None = None
) -> dict[Address, DeliveryKind]:
    """Return each address with the kind of its delivery: a reply to the origin, a copy to attached surfaces.

    With ``to``, a resolved route, the output goes there instead. A turn without an origin, such as a memory flush, has
    no addresses.
    """
    kind: DeliveryKind = "scheduled" if turn.purpose == "schedule" else "reply"
    kinds: dict[Address, DeliveryKind] = dict.fromkeys(to or (), kind)
    if to is None and turn.origin is not None:
        kinds[Address.of(turn.origin)] = kind
        for surface in session_keys.list_keys(tx, turn.session_id):
            if is_chat_key(surface.key) and not _is_chat_of(surface.source, turn.origin):
                kinds.setdefault(Address.of(surface.source), "copy")
    if "copy" in kinds.values():
        preview = outbox.find_preview(tx, turn.id)
        if preview is not None and preview.to in kinds:
            # The turn continued elsewhere after this preview: the preview becomes the reply here.
            kinds[preview.to] = kind
    return kinds


def _is_chat_of(surface: Source, origin: Source) -> bool:
    """Return whether a surface is the chat of the origin; only threads by their chat type are separate places."""
    return "thread" not in (surface.chat_type, origin.chat_type) and (
        (surface.platform, surface.account, surface.chat_id)
        == (origin.platform, origin.account, origin.chat_id)
    )
