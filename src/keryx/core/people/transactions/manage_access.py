"""The owner's decisions about people and roles, and the ids of users.

There is one owner, who can be neither blocked nor demoted: somebody must always be able to undo a decision.
"""

from collections.abc import Callable
from dataclasses import replace

from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed
from keryx.core.people.rules.access import Grant
from keryx.core.people.rules.person import Person, PersonId, resolve_id
from keryx.core.people.tables import access, people
from keryx.core.values.role import Role, check_role
from keryx.errors import InvalidValue, NotAllowed
from keryx.store.database import Tx


def change_role(tx: Tx, person_id: PersonId, role: Role, *, by: PersonId) -> Person:
    """Set the role of a person to member or guest, and return the person."""
    if check_role(role) == "owner":
        raise InvalidValue("role 'owner': there is one owner already; use member or guest")
    return _decide(tx, person_id, by=by, change=lambda: access.set_role(tx, person_id, role))


def block_person(tx: Tx, person_id: PersonId, *, by: PersonId) -> Person:
    """Block a person and the person's schedules, and return the person."""
    return _decide(tx, person_id, by=by, change=lambda: access.block(tx, person_id))


def unblock_person(tx: Tx, person_id: PersonId, *, by: PersonId) -> Person:
    """Unblock a person, and return the person."""
    return _decide(tx, person_id, by=by, change=lambda: access.unblock(tx, person_id))


def set_grant(tx: Tx, grant: Grant, *, by: PersonId) -> None:
    """Add a grant, in place of an earlier one with the same role, kind, name and platform."""
    require_owner(tx, by)
    access.set_grant(tx, grant)
    feed.add_personal_event(tx, by, "access")


def remove_grant(tx: Tx, grant: Grant, *, by: PersonId) -> bool:
    """Delete the grant with the same role, kind, name and platform; return whether there was one."""
    require_owner(tx, by)
    removed = access.remove_grant(tx, grant)
    if removed:
        feed.add_personal_event(tx, by, "access")
    return removed


def resolve_source(tx: Tx, source: Source) -> Source:
    """Return ``source`` with canonical ids of its user and chat, after storing its aliases.

    Call this before the source is used in any key.
    """
    user_id = source.user_id
    if user_id is not None:
        user_id = learn_alias(tx, source, given=user_id, alt=source.user_id_alt)
    chat_id = learn_alias(tx, source, given=source.chat_id, alt=source.chat_id_alt)
    if (user_id, chat_id) == (source.user_id, source.chat_id):
        return source
    return replace(source, user_id=user_id, chat_id=chat_id)


def learn_alias(tx: Tx, source: Source, *, given: str, alt: str | None) -> str:
    """Return the canonical id of a user or chat on the source's platform, after storing ``alt`` as its alias."""
    ids = [given] if alt is None else [given, alt]
    aliases = access.list_aliases(tx, source, ids)
    ends = {end for end in (*ids, *aliases.values()) if end not in aliases}
    # It matters only for two different ids whether they are in use.
    known = {end for end in ends if access.id_known(tx, source, end)} if len(ends) > 1 else set()
    resolved = resolve_id(aliases, given, alt=alt, known=known)
    if resolved.learnt is not None:
        alias, canonical = resolved.learnt
        access.add_alias(tx, source, alias=alias, user_id=canonical)
    return resolved.canonical


def require_owner(tx: Tx, person_id: PersonId) -> Person:
    """Return the person if it is the owner, else raise ``NotAllowed``."""
    person = people.get_person(tx, person_id)
    if person.role != "owner":
        raise NotAllowed(f"{person.name} is a {person.role}: only the owner decides who may do what.")
    return person


def _decide(tx: Tx, person_id: PersonId, *, by: PersonId, change: Callable[[], bool]) -> Person:
    """Make a change of the owner to another person, and return that person."""
    require_owner(tx, by)
    access.lock_person(tx, person_id)
    if person_id == by:
        raise NotAllowed("The owner's own role and access cannot be changed.")
    if change():
        feed.add_personal_event(tx, person_id, "access", person_id)
        feed.add_personal_event(tx, by, "access", person_id)
    return people.get_person(tx, person_id)
