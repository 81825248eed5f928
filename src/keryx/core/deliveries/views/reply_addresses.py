"""Where what a turn says is said: where it was asked, and on every surface that shows its conversation."""

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
    """Return the addresses with what is said there: the reply where it was asked, a copy on attached surfaces.

    With ``to``, a route already resolved, it is said there instead. What nobody asked for, as by a turn that keeps
    house, is said nowhere.
    """
    kind: DeliveryKind = "scheduled" if turn.purpose == "schedule" else "reply"
    kinds: dict[Address, DeliveryKind] = dict.fromkeys(to or (), kind)
    if to is None and turn.origin is not None:
        kinds[Address.of(turn.origin)] = kind
        for surface in session_keys.list_keys(tx, turn.session_id):
            if is_chat_key(surface.key) and not _is_chat_of(surface.source, turn.origin):
                kinds.setdefault(Address.of(surface.source), "copy")
    if "copy" in kinds.values():
        held = outbox.find_held(tx, turn.id)
        if held is not None and held.to in kinds:
            # A turn that goes on elsewhere was seen growing here: that becomes the answer, and no second one comes.
            kinds[held.to] = kind
    return kinds


def _is_chat_of(surface: Source, origin: Source) -> bool:
    """Say whether a surface is the chat somebody spoke in: only what is a thread by its type is a place of its own."""
    return "thread" not in (surface.chat_type, origin.chat_type) and (
        (surface.platform, surface.account, surface.chat_id)
        == (origin.platform, origin.account, origin.chat_id)
    )
