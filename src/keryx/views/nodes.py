"""Who works on the store, and what each holds."""

from keryx.store.database import ReadTx
from keryx.store.tables import malformed, nodes, people
from keryx.store.tables.nodes import HeldAccount, HeldSession, Node
from keryx.values import dataclass

__all__ = ["HeldAccount", "HeldSession", "Node", "Nodes", "has_gateway", "show_nodes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Every process that works on the store, the accounts they hold, and the sessions whose turns they run."""

    nodes: tuple[Node, ...]
    accounts: tuple[HeldAccount, ...]
    turns: tuple[HeldSession, ...]
    malformed: int
    """Updates that could not be read so far."""


def show_nodes(tx: ReadTx) -> Nodes:
    """Return who holds what."""
    return Nodes(
        nodes=tuple(nodes.list_nodes(tx)),
        accounts=tuple(nodes.list_connectors(tx)),
        turns=tuple(nodes.list_turns(tx)),
        malformed=malformed.count(tx),
    )


def list_platforms(tx: ReadTx) -> list[str]:
    """Return the accounts that are connected now, as people name them."""
    named = (each.platform if each.is_passing else each.name for each in nodes.list_connectors(tx))
    return list(dict.fromkeys(named))


def may_hear_troubles(tx: ReadTx, *, person_id: int, audience_id: int | None) -> bool:
    """Say whether somebody is told what does not work that the owner set up: the owner, where nobody else reads it."""
    return audience_id is None and people.get_person(tx, person_id).role == "owner"


def has_gateway(tx: ReadTx) -> bool:
    """Say whether a gateway runs the turns of every session now."""
    return nodes.has_gateway(tx)
