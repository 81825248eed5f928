"""The fate of every message from or to a platform, and the count of unfinished ones: what the simulator checks."""

from itertools import groupby
from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.delivery import DeliveryKind, DeliveryState
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import addresses
from keryx.core.turns.tables import inbox
from keryx.core.turns.tables.inbox import ItemFate as ItemFate
from keryx.core.values.turn_states import TurnId, TurnPurpose, TurnState
from keryx.store.codec import source_from_json
from keryx.store.database import ReadTx


class DeliveryFate(NamedTuple):
    """The state of a delivery."""

    id: int
    turn_id: int | None
    kind: DeliveryKind
    state: DeliveryState
    chat_id: str
    idempotency_key: str


class EndedTurn(NamedTuple):
    """A turn that has ended, and the surfaces that show its conversation."""

    id: TurnId
    session_id: str
    state: TurnState
    purpose: TurnPurpose
    origin: Source | None
    surfaces: tuple[Source, ...]


def list_fates(tx: ReadTx, *, platform: str, after: int = 0, limit: int = 500) -> list[ItemFate]:
    """Return a page of the inbox items from a platform, oldest first."""
    return inbox.list_fates(tx, platform=platform, after=after, limit=limit)


def list_deliveries(tx: ReadTx, *, platform: str, after: int = 0, limit: int = 500) -> list[DeliveryFate]:
    """Return a page of the deliveries to a platform, oldest first."""
    return tx.all(DeliveryFate, "message_fates.list_deliveries", platform=platform, after=after, limit=limit)


def list_ended(tx: ReadTx, *, after: int = 0) -> list[EndedTurn]:
    """Return the turns after one that have ended, each with the surfaces that show its conversation now."""
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
    """Count the inbox items from a platform without a fate, and the unfinished deliveries to it."""
    unfinished: int = tx.value("message_fates.count_unfinished", platform=platform)
    return inbox.count_unsettled(tx, platform=platform) + unfinished


def next_probe_at(tx: ReadTx, address: Address) -> Micros | None:
    """Return the time of the next probe of a dead address; None for a living one."""
    known = addresses.find_address(tx, address)
    return None if known is None else known.probe_at
