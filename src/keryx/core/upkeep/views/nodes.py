"""The processes that work on the store, and the leases that each holds."""

from keryx.core.accounts.views import HeldAccount, list_held
from keryx.core.people.tables import people
from keryx.core.turns.tables import leases
from keryx.core.turns.tables.leases import HeldSession
from keryx.core.upkeep import tables
from keryx.core.upkeep.tables import Node
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = ["HeldAccount", "HeldSession", "Node", "Nodes", "may_see_problems", "show_nodes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """All processes that work on the store, the accounts they hold, and the sessions whose turns they run."""

    nodes: tuple[Node, ...]
    accounts: tuple[HeldAccount, ...]
    turns: tuple[HeldSession, ...]
    malformed: int
    """How many updates could not be parsed so far."""


def show_nodes(tx: ReadTx) -> Nodes:
    """Return all processes and their leases."""
    return Nodes(
        nodes=tuple(tables.list_nodes(tx)),
        accounts=tuple(list_held(tx)),
        turns=tuple(leases.list_held(tx)),
        malformed=tables.count_malformed(tx),
    )


def may_see_problems(tx: ReadTx, *, person_id: int, audience_id: int | None) -> bool:
    """Return whether to show this person what fails in the owner's configuration: only to the owner, in private."""
    return audience_id is None and people.get_person(tx, person_id).role == "owner"
