"""Link two accounts to one person, who gets a code with one account and enters it with the other.

The account that gets the code must have the higher role. So nobody can be tricked into giving away rights by entering
a stranger's code. Sessions keep their owner and audience; the person joins the audiences of both accounts.
"""

from typing import Literal

from keryx.core.approvals import tables as approvals
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed
from keryx.core.people.rules.person import Person, PersonId
from keryx.core.people.tables import access, people
from keryx.core.people.transactions.pair_stranger import IssuedCode, WrongCode, enterer_of, issue_code, redeem
from keryx.core.schedules import tables as schedules
from keryx.core.values.role import at_least
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

LinkRefusal = Literal["linked", "wrong_way", "blocked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """Both accounts belong to this person now; ``source`` is the source at which the code was requested."""

    person: Person
    source: Source

    @property
    def reply(self) -> str:
        """The reply to the code."""
        return f"This account and {self.source.describe()} both belong to {self.person.name} now."


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRefused:
    """Nothing changed.

    ``linked``: both accounts belong to one person already. ``wrong_way``: the account that entered the code has the
    higher role. ``blocked``: one of the two people is blocked.
    """

    reason: LinkRefusal


def offer_link(tx: Tx, ids: Ids, *, source: Source, person_id: PersonId) -> IssuedCode:
    """Issue a code to a person at ``source``, to enter with the other account; expire earlier ones."""
    access.lock_person(tx, person_id)
    access.drop_links(tx, person_id)
    issued = issue_code(tx, ids, "link", source, person_id=person_id)
    feed.add_personal_event(tx, person_id, "pairing", issued.request_no)
    return issued


def enter_link(
    tx: Tx, text: str, *, source: Source, person_id: PersonId | None
) -> Linked | LinkRefused | WrongCode:
    """Enter a code at ``source``, whose ids must be canonical, as ``person_id`` (None: a stranger).

    All accounts of this person then belong to the person who requested the code.
    """
    pairing = redeem(tx, "link", text, enterer=enterer_of(source, person_id=person_id))
    if isinstance(pairing, WrongCode):
        return pairing
    assert pairing.person_id is not None  # Every link code has a person.
    for locked_id in sorted({pairing.person_id, person_id or pairing.person_id}):
        access.lock_person(tx, locked_id)
    person = people.get_person(tx, pairing.person_id)
    if person_id == person.id:
        return LinkRefused(reason="linked")
    entering = None if person_id is None else people.get_person(tx, person_id)
    if person.blocked_at is not None or (entering is not None and entering.blocked_at is not None):
        return LinkRefused(reason="blocked")
    if entering is not None and entering.role != person.role and at_least(entering.role, person.role):
        return LinkRefused(reason="wrong_way")
    if entering is not None:
        _merge(tx, entering, into=person)
        feed.add_personal_event(tx, entering.id, "access", person.id)
    _admit(tx, source, person)
    access.decide_pairing(tx, pairing.id, "approved", person_id=person.id, decided_by=person.id)
    feed.add_personal_event(tx, person.id, "access", person.id)
    return Linked(person=person, source=pairing.source)


def _merge(tx: Tx, entering: Person, *, into: Person) -> None:
    """Move the accounts, audiences, open questions and schedules of one person to another."""
    access.merge_people(tx, from_person_id=entering.id, to_person_id=into.id)
    approvals.move_to_person(tx, from_person_id=entering.id, to_person_id=into.id)
    schedules.move_to_person(tx, from_person_id=entering.id, to_person_id=into.id)


def _admit(tx: Tx, source: Source, person: Person) -> None:
    """Assign the account to the person, and approve its pending request, if any."""
    if source.user_id is None:
        return
    access.add_identity(tx, source, person_id=person.id, user_id=source.user_id)
    asked = access.find_asked(tx, source)
    if asked is not None and asked.state == "pending":
        access.decide_pairing(tx, asked.id, "approved", person_id=person.id, decided_by=person.id)
