"""The processes that work on the store, judged alive by the clock of the leases."""

from typing import Literal, NamedTuple

from keryx.clock import HOUR, Micros
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx

NodeKind = Literal["gateway", "chat"]
KEPT: Micros = HOUR
"""How long one that is gone is still shown."""


class Node(NamedTuple):
    """A row of the table."""

    holder: str
    kind: NodeKind
    host: str
    pid: int
    version: str
    started_at: Micros
    left: Micros
    """How long it is believed to be alive without another sign; below zero: it is gone."""


def enter(tx: Tx, *, holder: str, kind: NodeKind, host: str, pid: int, version: str) -> None:
    """Note a process, or that it is still alive; those that went long ago are forgotten."""
    tx.run("nodes.drop_gone", kept=KEPT)
    tx.run(
        "nodes.enter",
        holder=holder,
        kind=kind,
        host=clean_text(host),
        pid=pid,
        version=version,
        lease_time=LEASE_TIME,
    )


def leave(tx: Tx, holder: str) -> None:
    """Forget a process that ends."""
    tx.run("nodes.leave", holder=holder)


def has_gateway(tx: ReadTx) -> bool:
    """Say whether some gateway runs every session's turns now."""
    return tx.exists("nodes.has_gateway")


def list_nodes(tx: ReadTx) -> list[Node]:
    """Return who works on the store, longest first."""
    return tx.all(Node, "nodes.list")
