"""Tell the store that a process works on it, so that others know who holds what, and that a gateway is there."""

from keryx.core.accounts import tables as connector_leases
from keryx.core.turns.tables import leases
from keryx.core.upkeep.tables import nodes
from keryx.core.upkeep.tables.nodes import NodeKind
from keryx.store.database import Tx


def enter_node(tx: Tx, *, holder: str, kind: NodeKind, host: str, pid: int, version: str) -> None:
    """Begin to work on the store, or give another sign of life: due as often as leases are renewed."""
    nodes.enter(tx, holder=holder, kind=kind, host=host, pid=pid, version=version)


def leave_node(tx: Tx, *, holder: str) -> None:
    """End it, so that nobody waits for the time to run out."""
    nodes.leave(tx, holder)


def release_dead_node(tx: Tx, *, holder: str) -> None:
    """Free the sessions and accounts of a process that is certainly dead, so that nobody waits for its time to end."""
    leases.free_holder(tx, holder)
    connector_leases.free_holder(tx, holder)
    nodes.leave(tx, holder)
