"""What became of everything that came in from a platform or was to be said there, and what is still to be done."""

from itertools import groupby
from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import addresses, outbox
from keryx.core.deliveries.tables.outbox import DeliveryFate
from keryx.core.turns.tables import inbox
from keryx.core.turns.tables.inbox import ItemFate
from keryx.core.values.turn_states import TurnId, TurnPurpose, TurnState
from keryx.store.codec import source_from_json
from keryx.store.database import ReadTx

__all__ = [
    "DeliveryFate",
    "EndedTurn",
    "ItemFate",
    "count_unsettled",
    "list_deliveries",
    "list_ended",
    "list_fates",
    "next_probe_at",
]


class EndedTurn(NamedTuple):
    """A turn that is over, and where its conversation is shown."""

    id: TurnId
    session_id: str
    state: TurnState
    purpose: TurnPurpose
    origin: Source | None
    surfaces: tuple[Source, ...]


def list_fates(tx: ReadTx, *, platform: str, after: int = 0, limit: int = 500) -> list[ItemFate]:
    """Return a page of what came in from a platform, in the order of its arrival, each with its fate so far."""
    return inbox.list_fates(tx, platform=platform, after=after, limit=limit)


def list_deliveries(tx: ReadTx, *, platform: str, after: int = 0, limit: int = 500) -> list[DeliveryFate]:
    """Return a page of what was to be said on a platform, in the order in which it was queued, as it stands now."""
    return outbox.list_fates(tx, platform=platform, after=after, limit=limit)


def list_ended(tx: ReadTx, *, after: int = 0) -> list[EndedTurn]:
    """Return the turns after one that are over, each with the surfaces that show its conversation now."""
    rows = tx.rows("message_fates.list_ended", after=after)
    return [
        EndedTurn(
            id=TurnId(turn_id),
            session_id=session_id,
            state=state,
            purpose=purpose,
            origin=None if origin is None else source_from_json(origin),
            surfaces=tuple(source_from_json(source) for *_, source in shown if source is not None),
        )
        for (turn_id, session_id, state, purpose, origin), shown in groupby(rows, key=lambda row: row[:5])
    ]


def count_unsettled(tx: ReadTx, *, platform: str) -> int:
    """Count what came in from a platform and has no fate, and what is to be sent there and is not."""
    return inbox.count_unsettled(tx, platform=platform) + outbox.count_unsettled(tx, platform=platform)


def next_probe_at(tx: ReadTx, address: Address) -> Micros | None:
    """Return when an address that is known to be dead is tried again; None for one that is not."""
    known = addresses.find_address(tx, address)
    return None if known is None else known.probe_at
