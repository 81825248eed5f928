"""Sessions that programs open, and for whom a program acts."""

from keryx.config import Settings
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.rules.title import clean_title
from keryx.core.conversations.tables import feed, projects, session_keys, sessions
from keryx.core.conversations.transactions.enter_session import enter_session
from keryx.core.conversations.transactions.open_session import InheritedSettings, open_session
from keryx.core.conversations.views.current_session import Listener, find_current, resolve_key
from keryx.core.people.rules.access import audience_of
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.errors import NotAllowed
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What a new session is given; a project that is not there is made."""

    title: str | None = None
    project: str | None = None
    workspace: str | None = None
    model: str | None = None


def enter_store(tx: Tx, *, person_id: int | None) -> Person:
    """Return for whom a program acts: this person, else the owner, who is made in a new store."""
    owner = people.ensure_owner(tx)
    if person_id is None:
        return owner
    person = people.get_person(tx, person_id)
    if person.blocked_at is not None:
        raise NotAllowed(f"Person {person_id} is blocked: nobody can act for them.")
    return person


def create_session(tx: Tx, ids: Ids, *, source: Source, person: Person, wishes: SessionSettings) -> SessionId:
    """Open a session that no surface points to."""
    _require_own(source, person)
    project_id = None if wishes.project is None else _project(tx, wishes.project, person)
    handed = InheritedSettings(
        title=None if wishes.title is None else clean_title(wishes.title),
        project_id=project_id,
        workspace=wishes.workspace,
        model=wishes.model,
    )
    return open_session(tx, ids, source=source, owner=person, handed=handed)


def ensure_session(tx: Tx, ids: Ids, *, source: Source, person: Person, settings: Settings) -> SessionId:
    """Return the current session of a source, as a message of the person there would find it.

    The session is opened if there is none, and starts over if a reset is due. Raises ``NotFound`` if the conversation
    there is that of other people.
    """
    listener = Listener(
        person_id=person.id, audience_id=people.find_audience(tx, audience_of(source, person.id))
    )
    _key, current = find_current(tx, source, listener=listener, settings=settings)
    if current is None:
        # A message shows that its author may speak at the place. A program shows nothing.
        current = session_keys.find_key(tx, resolve_key(source, settings=settings, person_id=person.id))
    if current is None:
        _require_own(source, person)
    else:
        sessions.get_visible(tx, current.session_id, person_id=person.id)
    return enter_session(tx, source, person=person, settings=settings, ids=ids).session_id


def _require_own(source: Source, person: Person) -> None:
    # Whoever opens a session hears everything that is said at its place.
    if source.chat_type != "dm" and person.role != "owner":
        raise NotAllowed(f"Only the owner may open a session in a {source.chat_type} from a program.")


def _project(tx: Tx, name: str, person: Person) -> int | None:
    project = projects.find_by_name(tx, owner_id=person.id, name=name)
    if project is not None:
        return project.id
    project_id = projects.add_project(tx, owner_id=person.id, name=name)
    feed.add_personal_event(tx, person.id, "project", project_id)
    return project_id
