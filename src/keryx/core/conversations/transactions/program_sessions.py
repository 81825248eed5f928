"""Sessions that programs open on behalf of a person."""

from keryx.config import Settings
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.rules.title import clean_title
from keryx.core.conversations.tables import session_keys, sessions
from keryx.core.conversations.transactions.enter_session import enter_session
from keryx.core.conversations.transactions.manage_project import ensure_project
from keryx.core.conversations.transactions.open_session import InitialSettings, open_session
from keryx.core.conversations.views.current_session import find_current, resolve_key
from keryx.core.people.rules.access import audience_of
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.errors import NotAllowed
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """The options of a new session. A project that does not exist is created."""

    title: str | None = None
    project: str | None = None
    workspace: str | None = None
    model: str | None = None


def enter_store(tx: Tx, *, person_id: int | None) -> Person:
    """Return the person on whose behalf a program acts: this person, else the owner, who is added to a new store."""
    owner = people.ensure_owner(tx)
    if person_id is None:
        return owner
    person = people.get_person(tx, person_id)
    if person.blocked_at is not None:
        raise NotAllowed(f"Person {person_id} is blocked: nobody can act for them.")
    return person


def create_session(tx: Tx, ids: Ids, *, source: Source, person: Person, options: SessionOptions) -> SessionId:
    """Open a session that no key points to."""
    _require_own(source, person)
    project_id = None if options.project is None else ensure_project(tx, options.project, person_id=person.id)
    initial = InitialSettings(
        title=None if options.title is None else clean_title(options.title),
        project_id=project_id,
        workspace=options.workspace,
        model=options.model,
    )
    return open_session(tx, ids, source=source, owner=person, initial=initial)


def ensure_session(tx: Tx, ids: Ids, *, source: Source, person: Person, settings: Settings) -> SessionId:
    """Return the session that a message of the person at ``source`` would enter.

    A new session is opened if there is none or a reset is due. Raises ``NotFound`` if the session of the source belongs
    to other people.
    """
    audience_id = people.find_audience(tx, audience_of(source, person.id))
    _, current = find_current(tx, source, person_id=person.id, audience_id=audience_id, settings=settings)
    if current is None:
        # A message proves that its author is a member of the chat. A program proves nothing: check the plain key too.
        current = session_keys.find_key(tx, resolve_key(source, settings=settings, person_id=person.id))
    if current is None:
        _require_own(source, person)
    else:
        sessions.get_visible(tx, current.session_id, person_id=person.id)
    return enter_session(tx, source, person=person, settings=settings, ids=ids).session_id


def _require_own(source: Source, person: Person) -> None:
    # A person who opens a session reads everything in its chat.
    if source.chat_type != "dm" and person.role != "owner":
        raise NotAllowed(f"Only the owner may open a session in a {source.chat_type} from a program.")
