"""Sessions that programs open, and for whom a program acts."""

from keryx.domain.person import Person
from keryx.domain.session import SessionId
from keryx.domain.session_key import ScopeSettings, key_for
from keryx.domain.source import Source
from keryx.domain.title import clean_title
from keryx.errors import NotAllowed
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.store.tables import feed, keys, people, projects, sessions
from keryx.transactions.open_session import NOTHING, Handed, open_session
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
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


def create_session(tx: Tx, ids: Ids, *, source: Source, person: Person, wishes: Wishes) -> SessionId:
    """Open a session that no surface points to."""
    _require_own(source, person)
    project_id = None if wishes.project is None else _project(tx, wishes.project, person)
    handed = Handed(
        title=None if wishes.title is None else clean_title(wishes.title),
        project_id=project_id,
        workspace=wishes.workspace,
        model=wishes.model,
    )
    return open_session(tx, ids, source=source, owner=person, handed=handed)


def ensure_session(tx: Tx, ids: Ids, *, source: Source, person: Person) -> SessionId:
    """Return the current session of a surface, opening one where there is none."""
    key = key_for(source, ScopeSettings())
    found = keys.find_key(tx, key)
    if found is not None:
        return SessionId(sessions.get_visible(tx, found.session_id, person_id=person.id).id)
    _require_own(source, person)
    return open_session(tx, ids, source=source, owner=person, key=key, handed=NOTHING)


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
