"""Pairing: a stranger gets a code, and the owner approves or denies the request by its number or the code.

Only a hash of the code is stored. A code is valid for one decision within an hour. An account has at most three pending
requests. Five wrong codes lock a user out for an hour.
"""

import hashlib
from operator import itemgetter

from keryx.clock import Micros
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.tables import feed
from keryx.core.conversations.views.chats import list_chats
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import addresses
from keryx.core.deliveries.transactions.queue_delivery import queue_delivery
from keryx.core.people.rules.access import (
    PAIRING_LIFETIME,
    PairingCode,
    PairingRefusal,
    after_wrong_code,
    pairing_locked,
    pairing_refused,
    parse_pairing_code,
)
from keryx.core.people.rules.person import Person, PersonId
from keryx.core.people.tables import access, people
from keryx.core.people.tables.access import CodeKind, Enterer, Pairing
from keryx.core.people.transactions.manage_access import require_owner
from keryx.core.values.graphemes import cut
from keryx.core.values.role import Role, check_role
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.codec import clean_text
from keryx.store.database import Tx
from keryx.values import dataclass

REQUEST_NOTICE = (
    "{name} on {platform} asks to be let in. Answer with /pair approve {number} or /pair deny {number}."
)
YOUR_CODE = (
    "I do not know you yet. Your code is {code}. Give it or the number {number} to my owner within the hour."
)
NAME_LENGTH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedCode:
    """A code for pairing or linking, and the number of its request."""

    code: PairingCode
    request_no: int
    expires_at: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyAsked:
    """The stranger has an unexpired request, pending or denied, and gets no further reply until ``expires_at``."""

    request_no: int
    expires_at: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingRefused:
    """No code is issued now."""

    reason: PairingRefusal


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingApproved:
    """The stranger is this person now; ``pairing.source`` is the source of the request."""

    person: Person
    pairing: Pairing


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSuchRequest:
    """No request with this number is pending: it was decided, or has expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongCode:
    """The code is not valid; until ``locked_until``, if set, all codes of the user are ignored."""

    locked_until: Micros | None = None


def offer_pairing(tx: Tx, source: Source, ids: Ids) -> IssuedCode | AlreadyAsked | PairingRefused:
    """Issue a code to the stranger at ``source``, whose ids must be canonical, and notify the owner."""
    if source.user_id is None:
        raise InvalidValue(f"{source.platform} does not say who wrote: nobody can be paired")
    owner = people.ensure_owner(tx)
    # Serialize the requests: otherwise two at once would both count as the third.
    access.lock_person(tx, owner.id)
    asked = access.find_asked(tx, source)
    if asked is not None:
        return AlreadyAsked(request_no=asked.id, expires_at=asked.expires_at)
    tries = access.get_tries(tx, enterer_of(source, person_id=None))
    reason = pairing_refused(pending=access.count_pending(tx, source), tries=tries, now=tx.now)
    if reason is not None:
        return PairingRefused(reason=reason)
    issued = issue_code(tx, ids, "pairing", source, person_id=None)
    feed.add_personal_event(tx, owner.id, "pairing", issued.request_no)
    _notify_owner(tx, owner.id, source, issued.request_no, ids=ids)
    return issued


def approve_pairing(
    tx: Tx,
    request: int | PairingCode,
    *,
    by: PersonId,
    name: str | None = None,
    role: Role = "member",
    person_id: PersonId | None = None,
) -> PairingApproved | NoSuchRequest | WrongCode:
    """Approve the request with this number or code.

    The stranger becomes a new person with this name (None: the platform's name) and role, or another account of
    ``person_id``. Only the owner may approve, and there is no second owner.
    """
    require_owner(tx, by)
    if check_role(role) == "owner":
        raise InvalidValue(
            "role 'owner': there is one owner already; approve the request as that person instead"
        )
    access.lock_person(tx, by)
    if isinstance(request, int):
        pairing = access.find_pending(tx, request)
    else:
        found = redeem(tx, "pairing", request, enterer=_person_enterer(by))
        if isinstance(found, WrongCode):
            return found
        pairing = found
    if pairing is None:
        return NoSuchRequest()
    if person_id is not None:
        person = people.get_person(tx, person_id)
    else:
        shown = name or pairing.user_name or pairing.user_id
        person = people.add_person(tx, name=clean_text(shown), role=role)
    access.add_identity(tx, pairing.source, person_id=person.id, user_id=pairing.user_id)
    access.decide_pairing(tx, pairing.id, "approved", person_id=person.id, decided_by=by)
    feed.add_personal_event(tx, by, "pairing", pairing.id)
    feed.add_personal_event(tx, person.id, "access", person.id)
    return PairingApproved(person=person, pairing=pairing)


def deny_pairing(tx: Tx, request_no: int, *, by: PersonId) -> bool:
    """Deny the request with this number; return False if it is not pending. The stranger can ask when it expires."""
    require_owner(tx, by)
    access.lock_person(tx, by)
    pairing = access.find_pending(tx, request_no)
    if pairing is None:
        return False
    access.decide_pairing(tx, pairing.id, "denied", person_id=None, decided_by=by)
    feed.add_personal_event(tx, by, "pairing", pairing.id)
    return True


def expire_pairings(tx: Tx) -> int:
    """Mark overdue codes as expired and return their number."""
    expired = access.expire_pairings(tx)
    if expired:
        owner = people.ensure_owner(tx)
        for request_no in expired:
            feed.add_personal_event(tx, owner.id, "pairing", request_no)
    return len(expired)


def _notify_owner(tx: Tx, owner_id: PersonId, source: Source, request_no: int, *, ids: Ids) -> None:
    """Notify the owner of a request, in the direct message with the last activity; ``/pair`` lists it too.

    The notice goes to the terminal, which may be closed for long, only if no other chat is known.
    """
    places = {Address.of(place) for place in list_chats(tx, person_id=owner_id)}
    known = [
        (each.last_inbound_at or 0, place)
        for place in places
        if place.platform != LOCAL_CLI.platform
        and (each := addresses.find_address(tx, place)) is not None
        and each.dead_since_at is None
    ]
    _, address = max(known, key=itemgetter(0), default=(0, Address.of(LOCAL_CLI)))
    name = cut(" ".join((source.user_name or source.user_id or "").split()), NAME_LENGTH)
    text = REQUEST_NOTICE.format(name=name, platform=source.platform, number=request_no)
    queue_delivery(tx, text, to=address, key=ids.token(), kind="pairing", told=owner_id)


def issue_code(tx: Tx, ids: Ids, kind: CodeKind, source: Source, *, person_id: PersonId | None) -> IssuedCode:
    """Issue a code at ``source``; a link code belongs to a person."""
    code = PairingCode(ids.pairing_code())
    expires_at = tx.now + PAIRING_LIFETIME
    request_no = access.add_code(
        tx, kind, source, code_hash=_hash_code(code), person_id=person_id, expires_at=expires_at
    )
    return IssuedCode(code=code, request_no=request_no, expires_at=expires_at)


def redeem(tx: Tx, kind: CodeKind, text: str, *, enterer: Enterer) -> Pairing | WrongCode:
    """Return the row of a valid code, or count a wrong one. A valid code resets the count, but never ends a lock."""
    code = parse_pairing_code(text)
    tries = access.lock_tries(tx, enterer)
    if pairing_locked(tries, now=tx.now):
        return WrongCode(locked_until=tries.locked_until)
    pairing = access.find_by_code(tx, kind, _hash_code(code))
    if pairing is not None:
        access.clear_tries(tx, enterer)
        return pairing
    tries = after_wrong_code(tries, now=tx.now)
    access.set_tries(tx, enterer, tries)
    return WrongCode(locked_until=tries.locked_until)


def enterer_of(source: Source, *, person_id: PersonId | None) -> Enterer:
    """Return the user whose wrong codes are counted together; without a user id, the person."""
    if source.user_id is not None:
        return Enterer(source.platform, source.account or "", source.user_id)
    if person_id is None:
        raise InvalidValue(f"{source.platform} does not say who wrote: no code can be taken from there")
    return _person_enterer(person_id)


def _hash_code(code: PairingCode) -> str:
    return hashlib.sha256(code.encode("ascii")).hexdigest()


def _person_enterer(person_id: PersonId) -> Enterer:
    # "person" is no valid platform name.
    return Enterer("person", "", str(person_id))
