"""Who may do what: roles, grants, aliases, codes that were given out, and wrong ones that were entered."""

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
    """One code that was given out: the id is the request number people see."""

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
        """Where the code was given out."""
        return source_from_json(self.source_json)


class Enterer(NamedTuple):
    """Whose wrong codes are counted together."""

    platform: str
    account: str
    user_id: str


def lock_person(tx: Tx, person_id: int) -> None:
    """Keep everybody else from deciding about this person until this transaction ends."""
    if not tx.run("access.lock_person", person_id=person_id):
        raise NotFound(f"There is no person {person_id}.")


def set_role(tx: Tx, person_id: int, role: Role) -> bool:
    """Set a person's role; say whether that is new."""
    return tx.run("access.set_role", person_id=person_id, role=role) == 1


def block(tx: Tx, person_id: int) -> bool:
    """Keep a person from speaking; say whether that is new."""
    return tx.run("access.block", person_id=person_id) == 1


def unblock(tx: Tx, person_id: int) -> bool:
    """Let a person speak again; say whether that is new."""
    return tx.run("access.unblock", person_id=person_id) == 1


def add_identity(tx: Tx, source: Source, *, person_id: int, user_id: str) -> None:
    """Let a user of the source's platform be this person from now on."""
    tx.run(
        "people.add_identity",
        platform=source.platform,
        account=source.account or "",
        user_id=user_id,
        person_id=person_id,
        name=clean_text(source.user_name),
    )


def set_grant(tx: Tx, grant: Grant) -> None:
    """Store a grant, over an earlier one about the same."""
    tx.run(
        "access.set_grant",
        role=grant.role,
        platform=grant.platform or "",
        kind=grant.kind,
        name=clean_text(grant.name),
        allowed=int(grant.allow),
    )


def remove_grant(tx: Tx, grant: Grant) -> bool:
    """Forget the grant about the same, whether it allowed or not; say whether there was one."""
    removed = tx.run(
        "access.remove_grant",
        role=grant.role,
        platform=grant.platform or "",
        kind=grant.kind,
        name=clean_text(grant.name),
    )
    return removed == 1


def list_grants(tx: ReadTx) -> list[Grant]:
    """Return everything the owner has set."""
    return [
        Grant(role=role, platform=platform or None, kind=kind, name=name, allow=allowed == 1)
        for role, platform, kind, name, allowed in tx.rows("access.list_grants")
    ]


def list_aliases(tx: ReadTx, *, platform: str, account: str, ids: Iterable[str]) -> dict[str, str]:
    """Return every alias met on the way from ``ids`` to what they stand for."""
    found: dict[str, str] = {}
    for given in ids:
        alias = given
        while alias not in found:
            known = tx.value("access.find_alias", platform=platform, account=account, alias=alias)
            if known is None:
                break
            found[alias] = alias = known
    return found


def add_alias(tx: Tx, *, platform: str, account: str, alias: str, user_id: str) -> None:
    """Remember that two ids are one; whoever said so first stays right."""
    tx.run("access.add_alias", platform=platform, account=account, alias=alias, user_id=user_id)


def id_known(tx: ReadTx, source: Source, given: str) -> bool:
    """Say whether rows go by this id of a user or chat of the source's platform."""
    return tx.exists(
        "access.find_known_id",
        platform=source.platform,
        account=source.account or "",
        id=given,
        address=str(Address(platform=source.platform, account=source.account, chat_id=given)),
    )


def add_code(
    tx: Tx, kind: CodeKind, source: Source, *, code_hash: str, person_id: int | None, expires_at: Micros
) -> int:
    """Store that a code was given out at ``source``, and return its request number."""
    pairing_id: int = tx.value(
        "access.add_pairing",
        kind=kind,
        platform=source.platform,
        account=source.account or "",
        user_id=source.user_id or "",
        user_name=clean_text(source.user_name),
        source=to_json(source.to_dict()),
        code_hash=code_hash,
        person_id=person_id,
        expires_at=expires_at,
    )
    return pairing_id


def count_pending(tx: ReadTx, source: Source) -> int:
    """Count the strangers who wait for an answer on the source's account."""
    count: int = tx.value("access.count_pending", platform=source.platform, account=source.account or "")
    return count


def find_asked(tx: ReadTx, source: Source) -> Pairing | None:
    """Return the request this author has made within its hour and not been let in by, or None."""
    return tx.one(
        Pairing,
        "access.find_asked",
        platform=source.platform,
        account=source.account or "",
        user_id=source.user_id or "",
    )


def find_pending(tx: ReadTx, pairing_id: int) -> Pairing | None:
    """Return a stranger's request that waits for an answer, or None."""
    return tx.one(Pairing, "access.find_pending", pairing_id=pairing_id)


def find_by_code(tx: ReadTx, kind: CodeKind, code_hash: str) -> Pairing | None:
    """Return what a code that is still good was given out for, or None."""
    return tx.one(Pairing, "access.find_by_code", kind=kind, code_hash=code_hash)


def decide_pairing(
    tx: Tx, pairing_id: int, state: PairingState, *, person_id: int | None, decided_by: int
) -> None:
    """Use a code up; one that somebody was faster with raises ``Contended``."""
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
    """Let a person's earlier codes for linking be good for nothing."""
    tx.run("access.drop_links", person_id=person_id)


def expire_pairings(tx: Tx) -> list[int]:
    """Let the codes expire whose hour is over, and return their request numbers."""
    return sorted(tx.values("access.expire_pairings"))


def get_tries(tx: ReadTx, enterer: Enterer) -> PairingTries:
    """Return how many wrong codes somebody has entered."""
    return tx.one(PairingTries, "access.find_tries", **enterer._asdict()) or PairingTries()


def lock_tries(tx: Tx, enterer: Enterer) -> PairingTries:
    """Return how many wrong codes somebody has entered, and keep others from counting until this transaction ends."""
    tries = tx.one(PairingTries, "access.lock_tries", **enterer._asdict())
    assert tries is not None
    return tries


def set_tries(tx: Tx, enterer: Enterer, tries: PairingTries) -> None:
    """Store how many wrong codes somebody has entered, once they are locked."""
    tx.run("access.set_tries", wrong_count=tries.wrong, locked_until=tries.locked_until, **enterer._asdict())


def clear_tries(tx: Tx, enterer: Enterer) -> None:
    """Forget somebody's wrong codes."""
    tx.run("access.clear_tries", **enterer._asdict())


def merge_people(tx: Tx, *, from_person_id: int, to_person_id: int) -> None:
    """Let one person take over the other's accounts and audiences."""
    both = {"from_person_id": from_person_id, "to_person_id": to_person_id}
    tx.run("access.move_identities", **both)
    tx.run("access.join_audiences_of", **both)
