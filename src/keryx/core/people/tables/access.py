"""Roles, grants, aliases, and the codes for pairing and linking."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.route import Address
from keryx.core.people.rules.access import Grant, PairingTries
from keryx.core.people.rules.person import PersonId
from keryx.core.values.role import Role
from keryx.errors import NotFound
from keryx.store.codec import clean_text, source_from_json, to_json
from keryx.store.database import RaceLost, ReadTx, Tx

CodeKind = Literal["pairing", "link"]
PairingState = Literal["pending", "approved", "denied", "expired"]


class Pairing(NamedTuple):
    """A code for pairing or linking; ``id`` is the request number that people see."""

    id: int
    kind: CodeKind
    platform: str
    account: str
    user_id: str
    user_name: str | None
    source_json: str
    person_id: PersonId | None
    state: PairingState
    asked_at: Micros
    expires_at: Micros

    @property
    def source(self) -> Source:
        """The source at which the code was requested."""
        return source_from_json(self.source_json)


class Enterer(NamedTuple):
    """The user whose wrong codes are counted together."""

    platform: str
    account: str
    user_id: str


def lock_person(tx: Tx, person_id: int) -> None:
    """Lock a person until the transaction ends."""
    if not tx.run("access.lock_person", person_id=person_id):
        raise NotFound(f"There is no person {person_id}.")


def set_role(tx: Tx, person_id: int, role: Role) -> bool:
    """Set the role of a person; return whether it changed."""
    return tx.run("access.set_role", person_id=person_id, role=role) == 1


def block(tx: Tx, person_id: int) -> bool:
    """Block a person; return False if the person is blocked already."""
    return tx.run("access.block", person_id=person_id) == 1


def unblock(tx: Tx, person_id: int) -> bool:
    """Unblock a person; return whether the person was blocked."""
    return tx.run("access.unblock", person_id=person_id) == 1


def add_identity(tx: Tx, source: Source, *, person_id: int, user_id: str) -> None:
    """Assign a user of the source's platform to a person."""
    tx.run(
        "people.add_identity",
        **_account(source),
        user_id=user_id,
        person_id=person_id,
        name=clean_text(source.user_name),
    )


def set_grant(tx: Tx, grant: Grant) -> None:
    """Store a grant, in place of an earlier one with the same key."""
    tx.run("access.set_grant", **_grant_key(grant), allowed=int(grant.allow))


def remove_grant(tx: Tx, grant: Grant) -> bool:
    """Delete the grant with the same key, whatever its verdict; return whether there was one."""
    return tx.run("access.remove_grant", **_grant_key(grant)) == 1


def list_grants(tx: ReadTx) -> list[Grant]:
    """Return all grants."""
    return [
        Grant(role=role, platform=platform or None, kind=kind, name=name, allow=allowed == 1)
        for role, platform, kind, name, allowed in tx.rows("access.list_grants")
    ]


def list_aliases(tx: ReadTx, source: Source, ids: Iterable[str]) -> dict[str, str]:
    """Return the aliases on the way from ``ids`` to their canonical ids."""
    found: dict[str, str] = {}
    for given in ids:
        alias = given
        while alias not in found:
            known = tx.value("access.find_alias", **_account(source), alias=alias)
            if known is None:
                break
            found[alias] = alias = known
    return found


def add_alias(tx: Tx, source: Source, *, alias: str, user_id: str) -> None:
    """Add an alias of a canonical id; an existing alias does not change."""
    tx.run("access.add_alias", **_account(source), alias=alias, user_id=user_id)


def id_known(tx: ReadTx, source: Source, given: str) -> bool:
    """Return whether any row uses this id of a user or chat of the source's platform."""
    return tx.exists(
        "access.find_known_id",
        **_account(source),
        id=given,
        address=str(Address(platform=source.platform, account=source.account, chat_id=given)),
    )


def add_code(
    tx: Tx, kind: CodeKind, source: Source, *, code_hash: str, person_id: int | None, expires_at: Micros
) -> int:
    """Store a code that was requested at ``source``, and return its request number."""
    pairing_id: int = tx.value(
        "access.add_pairing",
        kind=kind,
        **_account(source),
        user_id=source.user_id or "",
        user_name=clean_text(source.user_name),
        source=to_json(source.to_dict()),
        code_hash=code_hash,
        person_id=person_id,
        expires_at=expires_at,
    )
    return pairing_id


def count_pending(tx: ReadTx, source: Source) -> int:
    """Count the pending requests on the source's account."""
    count: int = tx.value("access.count_pending", **_account(source))
    return count


def find_asked(tx: ReadTx, source: Source) -> Pairing | None:
    """Return the author's unexpired request that was not approved, or None."""
    return tx.one(
        Pairing,
        "access.find_asked",
        **_account(source),
        user_id=source.user_id or "",
    )


def find_pending(tx: ReadTx, pairing_id: int) -> Pairing | None:
    """Return a pending request of a stranger, or None."""
    return tx.one(Pairing, "access.find_pending", pairing_id=pairing_id)


def find_by_code(tx: ReadTx, kind: CodeKind, code_hash: str) -> Pairing | None:
    """Return the row of a valid code, or None."""
    return tx.one(Pairing, "access.find_by_code", kind=kind, code_hash=code_hash)


def decide_pairing(
    tx: Tx, pairing_id: int, state: PairingState, *, person_id: int | None, decided_by: int
) -> None:
    """Decide a pending code. Raise ``RaceLost`` if another transaction has decided it."""
    decided = tx.run(
        "access.decide_pairing",
        pairing_id=pairing_id,
        state=state,
        person_id=person_id,
        decided_by=decided_by,
    )
    if not decided:
        raise RaceLost


def drop_links(tx: Tx, person_id: int) -> None:
    """Expire the pending link codes of a person."""
    tx.run("access.drop_links", person_id=person_id)


def expire_pairings(tx: Tx) -> list[int]:
    """Expire overdue codes and return their request numbers."""
    return sorted(tx.values("access.expire_pairings"))


def get_tries(tx: ReadTx, enterer: Enterer) -> PairingTries:
    """Return the count of wrong codes."""
    return tx.one(PairingTries, "access.find_tries", **enterer._asdict()) or PairingTries()


def lock_tries(tx: Tx, enterer: Enterer) -> PairingTries:
    """Return the count of wrong codes, and lock it until the transaction ends."""
    tries = tx.one(PairingTries, "access.lock_tries", **enterer._asdict())
    assert tries is not None
    return tries


def set_tries(tx: Tx, enterer: Enterer, tries: PairingTries) -> None:
    """Store the count of wrong codes, which must be locked."""
    tx.run("access.set_tries", wrong_count=tries.wrong, locked_until=tries.locked_until, **enterer._asdict())


def clear_tries(tx: Tx, enterer: Enterer) -> None:
    """Delete the count of wrong codes."""
    tx.run("access.clear_tries", **enterer._asdict())


def merge_people(tx: Tx, *, from_person_id: int, to_person_id: int) -> None:
    """Move the identities of one person to another, and add the other to the same audiences."""
    both = {"from_person_id": from_person_id, "to_person_id": to_person_id}
    tx.run("access.move_identities", **both)
    tx.run("access.join_audiences_of", **both)


def _account(source: Source) -> dict[str, str]:
    return {"platform": source.platform, "account": source.account or ""}


def _grant_key(grant: Grant) -> dict[str, str]:
    name = clean_text(grant.name)
    return {"role": grant.role, "platform": grant.platform or "", "kind": grant.kind, "name": name}
