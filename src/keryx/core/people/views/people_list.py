"""People who are let in, and strangers who ask to be."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.people.rules.person import PersonId
from keryx.core.values.role import Role
from keryx.store.database import ReadTx


class PairingRequest(NamedTuple):
    """A stranger who asks to be let in."""

    id: int
    platform: str
    user_name: str | None
    user_id: str
    asked_at: Micros


class ListedPerson(NamedTuple):
    """Somebody who is let in, and the platforms on which they are known."""

    id: PersonId
    name: str
    role: Role
    blocked_at: Micros | None
    platforms: tuple[str, ...]


def list_requests(tx: ReadTx) -> list[PairingRequest]:
    """Return the strangers who wait to be let in, oldest first."""
    return tx.all(PairingRequest, "people_list.list_requests")


def list_people(tx: ReadTx) -> list[ListedPerson]:
    """Return the owner and everybody who was let in, oldest first; who was linked to another is that other."""
    people: dict[PersonId, ListedPerson] = {}
    for person_id, name, role, blocked_at, platform in tx.rows("people_list.list"):
        person = people.setdefault(person_id, ListedPerson(person_id, name, role, blocked_at, ()))
        if platform is not None and platform not in person.platforms:
            people[person_id] = person._replace(platforms=(*person.platforms, platform))
    return list(people.values())
