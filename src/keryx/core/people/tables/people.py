"""People, the accounts by which platforms know them, and the audiences they belong to."""

from keryx.core.people.rules.access import AudienceKey
from keryx.core.people.rules.person import Person
from keryx.errors import NotFound
from keryx.store.database import ReadTx, Tx


def ensure_owner(tx: Tx) -> Person:
    """Return the owner, making one in a new store."""
    owner = find_owner(tx)
    if owner is None:
        tx.run("people.add_owner")
        owner = find_owner(tx)
        assert owner is not None
        join_audience(
            tx, person_id=owner.id, audience_id=ensure_audience(tx, AudienceKey(f"person:{owner.id}"))
        )
    return owner


def find_owner(tx: ReadTx) -> Person | None:
    """Return the owner, or None in a store nobody has used yet."""
    return tx.one(Person, "people.find_owner")


def get_person(tx: ReadTx, person_id: int) -> Person:
    """Return a person by id."""
    person = tx.one(Person, "people.get", person_id=person_id)
    if person is None:
        raise NotFound(f"There is no person {person_id}.")
    return person


def find_by_identity(tx: ReadTx, *, platform: str, account: str, user_id: str) -> Person | None:
    """Return who is behind a user of a platform; ids must be canonical."""
    return tx.one(Person, "people.find_by_identity", platform=platform, account=account, user_id=user_id)


def add_person(tx: Tx, *, name: str, role: str) -> Person:
    """Add a person, with the audience of what is said to them alone."""
    person = get_person(tx, tx.value("people.add", name=name, role=role))
    join_audience(
        tx, person_id=person.id, audience_id=ensure_audience(tx, AudienceKey(f"person:{person.id}"))
    )
    return person


def ensure_audience(tx: Tx, key: AudienceKey) -> int:
    """Return the id of the audience of a place, making it at the first message there."""
    audience_id = find_audience(tx, key)
    if audience_id is None:
        tx.run("people.ensure_audience", key=key)
        audience_id = find_audience(tx, key)
        assert audience_id is not None
    return audience_id


def find_audience(tx: ReadTx, key: AudienceKey) -> int | None:
    """Return the id of the audience of a place, or None if nothing was said there."""
    found: int | None = tx.value("people.find_audience", key=key)
    return found


def join_audience(tx: Tx, *, person_id: int, audience_id: int) -> None:
    """Let a person hear what is said to an audience; again is no change."""
    tx.run("people.join_audience", person_id=person_id, audience_id=audience_id)


def hears(tx: ReadTx, *, person_id: int, audience_id: int) -> bool:
    """Say whether a person belongs to an audience."""
    return tx.exists("people.find_member", person_id=person_id, audience_id=audience_id)


def list_audiences(tx: ReadTx, person_id: int) -> list[int]:
    """Return the audiences a person belongs to."""
    return tx.values("people.list_audiences", person_id=person_id)


def list_private_audiences(tx: ReadTx, person_id: int) -> list[int]:
    """Return the audiences that are this person alone; after a link there are several."""
    return tx.values("people.list_private_audiences", person_id=person_id)


def mark_welcomed(tx: Tx, person_id: int) -> bool:
    """Note that somebody was greeted; say whether that is new."""
    return tx.run("people.mark_welcomed", person_id=person_id) == 1


def lock_audience(tx: Tx, audience_id: int) -> None:
    """Keep everybody else from changing what an audience remembers until this transaction ends."""
    tx.run("people.lock_audience", audience_id=audience_id)


def list_members(tx: ReadTx, audience_id: int) -> list[int]:
    """Return everybody who can see what is said to an audience."""
    return tx.values("people.list_members", audience_id=audience_id)
