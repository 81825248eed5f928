"""Which conversation is meant by an id, a title or a number, and a window of what was said in it.

Only what the person may see is found, and with an audience only what was said to these people.
"""

from typing import Final

from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.rules.session import parse_session_id
from keryx.core.conversations.rules.title import match_titles
from keryx.core.conversations.tables import sessions
from keryx.core.conversations.views import recent_sessions
from keryx.core.conversations.views.session_list import list_sessions
from keryx.core.conversations.views.transcript import list_transcript
from keryx.core.people.tables import people
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = ["FoundSession", "Window", "find_named", "read_window"]

NAMED_MAX: Final = 500
"""Among how many conversations a title is looked for."""
NUMBERED_MAX: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSession:
    """A conversation and what people know it by."""

    id: str
    name: str
    title: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Some messages of a conversation, oldest first, and whether there are earlier ones."""

    messages: tuple[Message, ...]
    has_earlier: bool


def find_named(tx: ReadTx, wanted: str, *, person_id: int, audience_id: int | None) -> list[FoundSession]:
    """Return the conversations that ``wanted`` may mean: one, several of the same name, or none.

    A number is the place in the list of the newest; ``audience_id`` narrows all of it to what was said to these.
    """
    by_id = _find_by_id(tx, wanted.strip(), person_id=person_id, audience_id=audience_id)
    if by_id is not None:
        return [by_id]
    listed = _listed(tx, person_id=person_id, audience_id=audience_id)
    number = wanted.strip()
    if number.isascii() and number.isdigit() and len(number) <= len(str(NUMBERED_MAX)):
        return listed[int(number) - 1 : int(number)] if 1 <= int(number) <= NUMBERED_MAX else []
    return [listed[index] for index in match_titles([each.title for each in listed], wanted)]


def read_window(tx: ReadTx, session_id: str, *, person_id: int, before: int | None, limit: int) -> Window:
    """Return the last messages, or with ``before`` the last of those with a smaller number."""
    found = list_transcript(tx, session_id, person_id=person_id, last=limit + 1, before=before)
    return Window(messages=tuple(found[-limit:]), has_earlier=len(found) > limit)


def _find_by_id(tx: ReadTx, wanted: str, *, person_id: int, audience_id: int | None) -> FoundSession | None:
    try:
        session = sessions.get_visible(tx, parse_session_id(wanted), person_id=person_id)
    except (InvalidValue, NotFound):
        return None
    if session.deleted_at is not None or audience_id not in (None, session.audience_id):
        return None
    name = session.title or session.preview or session.id
    return FoundSession(id=session.id, name=name, title=session.title)


def _listed(tx: ReadTx, *, person_id: int, audience_id: int | None) -> list[FoundSession]:
    if audience_id is None:
        page = list_sessions(tx, person_id=person_id, limit=NAMED_MAX)
        return [
            FoundSession(id=row.id, name=row.title or row.preview or row.id, title=row.title)
            for row in page.rows
        ]
    if not people.hears(tx, person_id=person_id, audience_id=audience_id):
        return []
    rows = recent_sessions.list_sessions(tx, audience_id=audience_id, limit=NAMED_MAX)
    return [FoundSession(id=row.id, name=row.name, title=row.title) for row in rows]
