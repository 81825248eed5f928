"""People, the users that platforms know them as, and their audiences."""

from keryx.core.people.rules.access import AudienceKey
from keryx.core.people.rules.person import Person
from keryx.errors import NotFound
from keryx.store.database import ReadTx, Tx


def ensure_owner(tx: Tx) -> Person:
    """Return the owner, who is added to a new store."""
    owner = find_owner(tx)
    if owner is None:
        tx.run("people.add_owner")
        owner = find_owner(tx)
        assert owner is not None
        ensure_member(tx, AudienceKey(f"person:{owner.id}"), person_id=owner.id)
    return owner


def find_owner(tx: ReadTx) -> Person | None:
    """Return the owner, or None in a new store."""
    return tx.one(Person, "people.find_owner")


def get_person(tx: ReadTx, person_id: int) -> Person:
    """Return a person by id."""
    person = tx.one(Person, "people.get", person_id=person_id)
    if person is None:
        raise NotFound(f"There is no person {person_id}.")
    return person


def find_by_identity(tx: ReadTx, *, platform: str, account: str, user_id: str) -> Person | None:
    """Return the person who is a user of a platform, or None; ``user_id`` must be canonical."""
    return tx.one(Person, "people.find_by_identity", platform=platform, account=account, user_id=user_id)


def add_person(tx: Tx, *, name: str, role: str) -> Person:
    """Add a person and the person's private audience."""
    person = get_person(tx, tx.value("people.add", name=name, role=role))
    ensure_member(tx, AudienceKey(f"person:{person.id}"), person_id=person.id)
    return person


def ensure_audience(tx: Tx, key: AudienceKey) -> int:
    """Return the id of an audience, which is added if it does not exist."""
    audience_id = find_audience(tx, key)
    if audience_id is None:
        tx.run("people.ensure_audience", key=key)
        audience_id = find_audience(tx, key)
        assert audience_id is not None
    return audience_id


def find_audience(tx: ReadTx, key: AudienceKey) -> int | None:
    """Return the id of an audience, or None if it does not exist."""
    found: int | None = tx.value("people.find_audience", key=key)
    return found


def ensure_member(tx: Tx, key: AudienceKey, *, person_id: int) -> int:
    """Return the id of an audience after adding the audience and the person as its member where needed."""
    audience_id = ensure_audience(tx, key)
    join_audience(tx, person_id=person_id, audience_id=audience_id)
    return audience_id


def join_audience(tx: Tx, *, person_id: int, audience_id: int) -> None:
    """Add a person to an audience."""
    tx.run("people.join_audience", person_id=person_id, audience_id=audience_id)


def is_member(tx: ReadTx, *, person_id: int, audience_id: int) -> bool:
    """Return whether a person is a member of an audience."""
    return tx.exists("people.find_member", person_id=person_id, audience_id=audience_id)


def list_audiences(tx: ReadTx, person_id: int) -> list[int]:
    """Return the audiences of a person."""
    return tx.values("people.list_audiences", person_id=person_id)


def list_private_audiences(tx: ReadTx, person_id: int) -> list[int]:
    """Return the audiences whose only member is this person; after a link there are several."""
    return tx.values("people.list_private_audiences", person_id=person_id)


def mark_welcomed(tx: Tx, person_id: int) -> bool:
    """Record that a person was welcomed; return False if that was recorded before."""
    return tx.run("people.mark_welcomed", person_id=person_id) == 1


def lock_audience(tx: Tx, audience_id: int) -> None:
    """Lock an audience until the transaction ends, because its memories change."""
    tx.run("people.lock_audience", audience_id=audience_id)


def list_members(tx: ReadTx, audience_id: int) -> list[int]:
    """Return the members of an audience."""
    return tx.values("people.list_members", audience_id=audience_id)
