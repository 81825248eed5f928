"""Record which processes work on the store, so that each knows whether a gateway runs and who holds which lease."""

from keryx.core.accounts import tables as connector_leases
from keryx.core.turns.tables import leases
from keryx.core.upkeep import tables
from keryx.store.database import Tx


def enter_node(tx: Tx, *, holder: str, kind: tables.NodeKind, host: str, pid: int, version: str) -> None:
    """Record a process's start or heartbeat; due as often as its leases are renewed."""
    tables.enter_node(tx, holder=holder, kind=kind, host=host, pid=pid, version=version)


def leave_node(tx: Tx, *, holder: str) -> None:
    """Record the end of a process, so that no other process waits until it expires."""
    tables.drop_node(tx, holder)


def release_dead_node(tx: Tx, *, holder: str) -> None:
    """Free the sessions and accounts of a process that is certainly dead, without waiting until it expires."""
    leases.free_holder(tx, holder)
    connector_leases.free_holder(tx, holder)
    tables.drop_node(tx, holder)
