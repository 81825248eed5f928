"""Who works on the store, and what each holds."""

from keryx.core.accounts.views import HeldAccount, list_held
from keryx.core.people.tables import people
from keryx.core.turns.tables import leases
from keryx.core.turns.tables.leases import HeldSession
from keryx.core.upkeep.tables import malformed_updates, nodes
from keryx.core.upkeep.tables.nodes import Node
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = ["HeldAccount", "HeldSession", "Node", "Nodes", "show_nodes"]


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
        accounts=tuple(list_held(tx)),
        turns=tuple(leases.list_held(tx)),
        malformed=malformed_updates.count(tx),
    )


def may_hear_troubles(tx: ReadTx, *, person_id: int, audience_id: int | None) -> bool:
    """Say whether somebody is told what does not work that the owner set up: the owner, where nobody else reads it."""
    return audience_id is None and people.get_person(tx, person_id).role == "owner"
