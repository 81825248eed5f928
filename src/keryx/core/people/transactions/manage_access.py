"""What the owner decides about people, and which ids are one user.

There is one owner, who can be neither blocked nor demoted: somebody must always be able to undo a decision.
"""

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
    """Give a person another role than the owner's, and return the person."""
    if check_role(role) == "owner":
        raise InvalidValue("role 'owner': there is one owner already; use member or guest")
    _decide_about(tx, person_id, by=by)
    if access.set_role(tx, person_id, role):
        _tell(tx, person_id, by)
    return people.get_person(tx, person_id)


def block_person(tx: Tx, person_id: PersonId, *, by: PersonId) -> Person:
    """Keep a person from speaking and their schedules from firing, until unblocked; return the person."""
    _decide_about(tx, person_id, by=by)
    if access.block(tx, person_id):
        _tell(tx, person_id, by)
    return people.get_person(tx, person_id)


def unblock_person(tx: Tx, person_id: PersonId, *, by: PersonId) -> Person:
    """Let a person speak again, and return the person."""
    _decide_about(tx, person_id, by=by)
    if access.unblock(tx, person_id):
        _tell(tx, person_id, by)
    return people.get_person(tx, person_id)


def set_grant(tx: Tx, grant: Grant, *, by: PersonId) -> None:
    """Allow a role something on a platform, or take it away, over an earlier grant about the same."""
    require_owner(tx, by)
    access.set_grant(tx, grant)
    feed.add_personal_event(tx, by, "access")


def remove_grant(tx: Tx, grant: Grant, *, by: PersonId) -> bool:
    """Forget the grant about the same, whichever way it went; say whether there was one."""
    require_owner(tx, by)
    removed = access.remove_grant(tx, grant)
    if removed:
        feed.add_personal_event(tx, by, "access")
    return removed


def resolve_source(tx: Tx, source: Source) -> Source:
    """Return ``source`` with the ids its user and chat go by, remembering what it tells about them.

    To be called before anything is keyed by the source.
    """
    user_id = source.user_id
    if user_id is not None:
        user_id = _resolve(tx, source, user_id, alt=source.user_id_alt)
    chat_id = _resolve(tx, source, source.chat_id, alt=source.chat_id_alt)
    if (user_id, chat_id) == (source.user_id, source.chat_id):
        return source
    return replace(source, user_id=user_id, chat_id=chat_id)


def learn_alias(tx: Tx, source: Source, *, given: str, alt: str) -> str:
    """Remember that two ids on the source's platform are one user or chat, and return the one it goes by."""
    return _resolve(tx, source, given, alt=alt)


def require_owner(tx: Tx, person_id: PersonId) -> Person:
    """Return the owner if this is the owner, else raise ``NotAllowed``."""
    person = people.get_person(tx, person_id)
    if person.role != "owner":
        raise NotAllowed(f"{person.name} is a {person.role}: only the owner decides who may do what.")
    return person


def _decide_about(tx: Tx, person_id: PersonId, *, by: PersonId) -> None:
    require_owner(tx, by)
    access.lock_person(tx, person_id)
    if person_id == by:
        raise NotAllowed("The owner's own role and access cannot be changed.")


def _tell(tx: Tx, person_id: PersonId, by: PersonId) -> None:
    feed.add_personal_event(tx, person_id, "access", person_id)
    feed.add_personal_event(tx, by, "access", person_id)


def _resolve(tx: Tx, source: Source, given: str, *, alt: str | None) -> str:
    account = source.account or ""
    ids = [given] if alt is None else [given, alt]
    aliases = access.list_aliases(tx, platform=source.platform, account=account, ids=ids)
    ends = {end for end in (*ids, *aliases.values()) if end not in aliases}
    # Whether an id is in use matters only where two ids turn out to be one.
    known = {end for end in ends if access.id_known(tx, source, end)} if len(ends) > 1 else set()
    resolved = resolve_id(aliases, given, alt=alt, known=known)
    if resolved.learnt is not None:
        alias, canonical = resolved.learnt
        access.add_alias(tx, platform=source.platform, account=account, alias=alias, user_id=canonical)
    return resolved.canonical
