"""Who works on the store, and what each holds."""

from dataclasses import dataclass

from keryx.store.database import ReadTx
from keryx.store.tables import malformed, nodes
from keryx.store.tables.nodes import HeldAccount, Node

__all__ = ["HeldAccount", "Node", "Nodes", "has_gateway", "show_nodes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Every process that works on the store, the accounts they hold, and how many turns each runs."""

    nodes: tuple[Node, ...]
    accounts: tuple[HeldAccount, ...]
    turns: dict[str, int]
    malformed: int
    """Updates that could not be read so far."""


def show_nodes(tx: ReadTx) -> Nodes:
    """Return who holds what."""
    return Nodes(
        nodes=tuple(nodes.list_nodes(tx)),
        accounts=tuple(nodes.list_connectors(tx)),
        turns=nodes.count_turns(tx),
        malformed=malformed.count(tx),
    )


def list_platforms(tx: ReadTx) -> list[str]:
    """Return the accounts that are connected now, as people name them."""
    named = (
        each.platform if not each.account or each.is_passing else f"{each.platform} ({each.account})"
        for each in nodes.list_connectors(tx)
    )
    return list(dict.fromkeys(named))


def has_gateway(tx: ReadTx) -> bool:
    """Say whether a gateway runs the turns of every session now."""
    return nodes.has_gateway(tx)
