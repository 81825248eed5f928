"""The processes that work on the store, and the platform updates that could not be parsed."""

from typing import Literal, NamedTuple

from keryx.clock import HOUR, Micros
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.store.codec import clean_columns
from keryx.store.database import ReadTx, Tx

NodeKind = Literal["gateway", "chat"]
KEPT: Micros = HOUR
"""How long an expired process stays in the list."""


class Node(NamedTuple):
    """A process that works on the store."""

    holder: str
    kind: NodeKind
    host: str
    pid: int
    version: str
    started_at: Micros
    remaining: Micros
    """The time until it expires without another heartbeat; negative once it has expired."""


class MalformedUpdate(NamedTuple):
    """An update of a platform that could not be parsed, as it came."""

    id: int
    platform: str
    account: str
    ref: str
    raw: str
    reason: str
    received_at: Micros


def enter_node(tx: Tx, **columns: str | int) -> None:
    """Add a process or extend its time, and delete the processes that expired long ago."""
    tx.run("upkeep.drop_expired_nodes", kept=KEPT)
    tx.run("upkeep.enter_node", lease_time=LEASE_TIME, **clean_columns(columns))


def drop_node(tx: Tx, holder: str) -> None:
    """Delete a process."""
    tx.run("upkeep.drop_node", holder=holder)


def has_gateway(tx: ReadTx) -> bool:
    """Return whether a gateway is alive: it runs the turns of all sessions."""
    return tx.exists("upkeep.has_gateway")


def list_nodes(tx: ReadTx) -> list[Node]:
    """Return all processes, oldest first."""
    return tx.all(Node, "upkeep.list_nodes")


def add_malformed(tx: Tx, **columns: str) -> bool:
    """Store an update that could not be parsed; return whether it is new."""
    return tx.run("upkeep.add_malformed", **clean_columns(columns)) == 1


def list_malformed(tx: ReadTx, *, limit: int) -> list[MalformedUpdate]:
    """Return the newest updates that could not be parsed, newest first."""
    return tx.all(MalformedUpdate, "upkeep.list_malformed", limit=limit)


def count_malformed(tx: ReadTx) -> int:
    """Return how many updates could not be parsed."""
    return int(tx.value("upkeep.count_malformed"))
