"""Where things stand in one session: what a person is told who asks with a command."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.domain.inbox import Fate, InboxState
from keryx.domain.outbox import DeliveryState
from keryx.domain.person import PersonId, Role
from keryx.domain.process import ProcessState
from keryx.domain.session import SessionId, SessionState
from keryx.domain.source import Source
from keryx.store.codec import source_from_json
from keryx.store.database import ReadTx


class ListedSession(NamedTuple):
    """A session as a list shows it."""

    id: SessionId
    title: str | None
    preview: str | None
    state: SessionState
    pinned_at: Micros | None
    last_active_at: Micros
    message_count: int

    @property
    def name(self) -> str:
        """What people know it by."""
        return self.title or self.preview or self.id


class LastMessage(NamedTuple):
    """The last thing somebody said, and its fate."""

    id: int
    state: InboxState
    fate: Fate | None
    fate_note: str | None
    received_at: Micros


class LastDelivery(NamedTuple):
    """The last answer, and what became of it."""

    id: int
    state: DeliveryState
    platform: str
    attempts: int
    error: str | None
    maybe_repeated_at: Micros | None
    created_at: Micros


class LastReset(NamedTuple):
    """Out of which session this one began, and when."""

    from_session_id: SessionId
    created_at: Micros


class ListedProcess(NamedTuple):
    """A background process as a list shows it."""

    id: int
    state: ProcessState
    command: str
    exit_code: int | None
    started_at: Micros
    ended_at: Micros | None


class Question(NamedTuple):
    """Something a person is asked to allow."""

    id: int
    text: str


class ListedSchedule(NamedTuple):
    """A schedule as a list shows it."""

    id: int
    name: str
    rule: str
    state: str
    origin_json: str | None
    due_at: Micros | None

    @property
    def origin(self) -> Source | None:
        """Where it was made, if that is a place to answer to."""
        return None if self.origin_json is None else source_from_json(self.origin_json)


class Request(NamedTuple):
    """A stranger who asks to be let in."""

    id: int
    platform: str
    user_name: str | None
    user_id: str
    asked_at: Micros


class ListedPerson(NamedTuple):
    """Somebody who is let in, and the platforms on which they are known."""

    id: PersonId
    name: str
    role: Role
    blocked_at: Micros | None
    platforms: tuple[str, ...]


def list_sessions(tx: ReadTx, *, audience_id: int, limit: int) -> list[ListedSession]:
    """Return what was said to an audience lately, pinned first, then by last activity."""
    return [
        ListedSession._make(row)
        for row in tx.rows("standing.list_sessions", audience_id=audience_id, limit=limit)
    ]


def was_shown_at(tx: ReadTx, session_id: str, address: str) -> bool:
    """Say whether what a session said lately was said at an address, too."""
    return tx.row("standing.shown_at", session_id=session_id, address=address) is not None


def find_last_message(tx: ReadTx, session_id: str) -> LastMessage | None:
    """Return the last thing somebody said to a session, or None."""
    row = tx.row("standing.last_message", session_id=session_id)
    return None if row is None else LastMessage._make(row)


def find_last_delivery(tx: ReadTx, session_id: str) -> LastDelivery | None:
    """Return the last answer a session gave, or None."""
    row = tx.row("standing.last_delivery", session_id=session_id)
    return None if row is None else LastDelivery._make(row)


def find_last_reset(tx: ReadTx, session_id: str) -> LastReset | None:
    """Return the reset by which a session began, or None."""
    row = tx.row("standing.last_reset", session_id=session_id)
    return None if row is None else LastReset._make(row)


def list_processes(tx: ReadTx, session_id: str, *, limit: int) -> list[ListedProcess]:
    """Return the background processes of a session, newest first."""
    rows = tx.rows("standing.list_processes", session_id=session_id, limit=limit)
    return [ListedProcess._make(row) for row in rows]


def list_questions(tx: ReadTx, session_id: str, *, person_id: int) -> list[Question]:
    """Return what a session waits for this person to allow, oldest first."""
    rows = tx.rows("standing.list_questions", session_id=session_id, person_id=person_id)
    return [Question._make(row) for row in rows]


def list_schedules(tx: ReadTx, *, owner_id: int) -> list[ListedSchedule]:
    """Return a person's schedules that have not ended, oldest first."""
    return [ListedSchedule._make(row) for row in tx.rows("standing.list_schedules", owner_id=owner_id)]


def list_requests(tx: ReadTx) -> list[Request]:
    """Return the strangers who wait to be let in, oldest first."""
    return [Request._make(row) for row in tx.rows("standing.list_requests")]


def list_people(tx: ReadTx) -> list[ListedPerson]:
    """Return the owner and everybody who was let in, oldest first; who was linked to another is that other."""
    people: dict[PersonId, ListedPerson] = {}
    for person_id, name, role, blocked_at, platform in tx.rows("standing.list_people"):
        person = people.setdefault(person_id, ListedPerson(person_id, name, role, blocked_at, ()))
        if platform is not None and platform not in person.platforms:
            people[person_id] = person._replace(platforms=(*person.platforms, platform))
    return list(people.values())
