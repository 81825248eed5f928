"""Link: prove on both sides that two accounts are one person.

The code is given out where the person may do more and entered where they may do less: nobody can be talked into
giving their own rights away by entering a stranger's code. Sessions keep their owner and audience; what one may see
is joined when asked, so nothing is rewritten.
"""

from keryx.clock import Micros
from keryx.core.approvals.tables import approvals
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed
from keryx.core.people.rules.access import PAIRING_LIFETIME, PairingCode
from keryx.core.people.rules.person import Person, PersonId
from keryx.core.people.tables import access, people
from keryx.core.people.transactions.pair_stranger import WrongCode, enterer_of, hash_code, redeem
from keryx.core.schedules import tables as schedules
from keryx.core.values.role import at_least
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOffered:
    """The code to enter on the other account; it makes that account this person's."""

    code: PairingCode
    expires_at: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """Both accounts are this person now; ``source`` is where the code was given out."""

    person: Person
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyLinked:
    """Both accounts were this person before."""

    person: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongWay:
    """Whoever entered the code may do more than whoever it was given to: get a code here and enter it there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBlocked:
    """One of the two may not speak, so nothing is linked."""


def offer_link(tx: Tx, ids: Ids, *, source: Source, person_id: PersonId) -> LinkOffered:
    """Give a person, speaking at ``source``, a code to enter on the other account; earlier ones are void."""
    access.lock_person(tx, person_id)
    access.drop_links(tx, person_id)
    code = PairingCode(ids.pairing_code())
    expires_at = tx.now + PAIRING_LIFETIME
    request_no = access.add_code(
        tx, "link", source, code_hash=hash_code(code), person_id=person_id, expires_at=expires_at
    )
    feed.add_personal_event(tx, person_id, "pairing", request_no)
    return LinkOffered(code=code, expires_at=expires_at)


def enter_link(
    tx: Tx, text: str, *, source: Source, person_id: PersonId | None
) -> Linked | AlreadyLinked | WrongWay | LinkBlocked | WrongCode:
    """Enter a code at ``source``, ids resolved, as the person known there (None: a stranger).

    The account and all else by which that person is known become the person's to whom the code was given.
    """
    pairing = redeem(tx, "link", text, enterer=enterer_of(source, person_id=person_id))
    if isinstance(pairing, WrongCode):
        return pairing
    assert pairing.person_id is not None  # a code for linking is always somebody's
    for locked_id in sorted({pairing.person_id, person_id or pairing.person_id}):
        access.lock_person(tx, locked_id)
    person = people.get_person(tx, pairing.person_id)
    if person_id == person.id:
        return AlreadyLinked(person=person)
    entering = None if person_id is None else people.get_person(tx, person_id)
    if person.blocked_at is not None or (entering is not None and entering.blocked_at is not None):
        return LinkBlocked()
    if entering is not None and entering.role != person.role and at_least(entering.role, person.role):
        return WrongWay()
    if entering is not None:
        _merge(tx, entering, into=person)
        feed.add_personal_event(tx, entering.id, "access", person.id)
    _admit(tx, source, person)
    access.decide_pairing(tx, pairing.id, "approved", person_id=person.id, decided_by=person.id)
    feed.add_personal_event(tx, person.id, "access", person.id)
    return Linked(person=person, source=pairing.source)


def _merge(tx: Tx, entering: Person, *, into: Person) -> None:
    """Let a person take over another's accounts, what they may see, open questions and schedules."""
    access.merge_people(tx, from_person_id=entering.id, to_person_id=into.id)
    approvals.move_to_person(tx, from_person_id=entering.id, to_person_id=into.id)
    schedules.move_to_person(tx, from_person_id=entering.id, to_person_id=into.id)


def _admit(tx: Tx, source: Source, person: Person) -> None:
    """Let the account be this person's, and a request it made as a stranger be answered by that."""
    if source.user_id is None:
        return
    access.add_identity(tx, source, person_id=person.id, user_id=source.user_id)
    asked = access.find_asked(tx, source)
    if asked is not None and asked.state == "pending":
        access.decide_pairing(tx, asked.id, "approved", person_id=person.id, decided_by=person.id)
