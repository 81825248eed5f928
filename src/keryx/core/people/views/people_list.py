"""The people in the store, the pending requests of strangers, and the grants of roles."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.people.rules.person import PersonId
from keryx.core.people.tables.access import list_grants
from keryx.core.values.role import Role
from keryx.store.database import ReadTx

__all__ = ["ListedPerson", "PairingRequest", "list_grants", "list_people", "list_requests"]


class PairingRequest(NamedTuple):
    """A pending request of a stranger."""

    id: int
    platform: str
    user_name: str | None
    user_id: str
    asked_at: Micros


class ListedPerson(NamedTuple):
    """A person, and the platforms on which the person has accounts."""

    id: PersonId
    name: str
    role: Role
    blocked_at: Micros | None
    platforms: tuple[str, ...]


def list_requests(tx: ReadTx) -> list[PairingRequest]:
    """Return the pending requests, oldest first."""
    return tx.all(PairingRequest, "people_list.list_requests")


def list_people(tx: ReadTx) -> list[ListedPerson]:
    """Return the owner and all people with accounts, oldest first. People who were linked are one person."""
    people: dict[PersonId, ListedPerson] = {}
    for person_id, name, role, blocked_at, platform in tx.rows("people_list.list"):
        person = people.setdefault(person_id, ListedPerson(person_id, name, role, blocked_at, ()))
        if platform is not None and platform not in person.platforms:
            people[person_id] = person._replace(platforms=(*person.platforms, platform))
    return list(people.values())
