"""Approval rules as a list shows them, with the names of the sessions."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.store.database import ReadTx


class ListedRule(NamedTuple):
    """A rule as a list shows it."""

    id: int
    tool: str
    pattern: str
    session_id: str | None
    since_at: Micros
    session_title: str | None


def list_rules(tx: ReadTx, person_id: int, *, limit: int) -> list[ListedRule]:
    """Return everything a person lastingly allows, oldest first."""
    return tx.all(ListedRule, "rule_list.list_of_person", person_id=person_id, limit=limit)
