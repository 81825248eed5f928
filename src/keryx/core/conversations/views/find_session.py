"""Find a session by id, title or number, and read some of its messages.

Only sessions that the person may see are found; with an audience, only sessions of this audience.
"""

from collections.abc import Sequence
from typing import Final

from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.rules.session import parse_session_id
from keryx.core.conversations.rules.title import match_titles
from keryx.core.conversations.views.session_list import Session, get_session, list_recent, list_sessions
from keryx.core.conversations.views.transcript import list_transcript
from keryx.core.people.tables import people
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = ["Session", "Window", "find_named", "read_window"]

NAMED_MAX: Final = 500
"""A title is searched among this many sessions."""
NUMBERED_MAX: Final = 10
"""Only the first sessions of a list have a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Some messages of a session, oldest first, and whether there are earlier ones."""

    messages: tuple[Message, ...]
    has_earlier: bool


def find_named(tx: ReadTx, wanted: str, *, person_id: int, audience_id: int | None) -> list[Session]:
    """Return the sessions that ``wanted`` may mean: one, several with the same title, or none.

    ``wanted`` is an id, a title or a number in the list of recent sessions.
    """
    wanted = wanted.strip()
    by_id = _find_by_id(tx, wanted, person_id=person_id, audience_id=audience_id)
    if by_id is not None:
        return [by_id]
    listed = _list(tx, person_id=person_id, audience_id=audience_id)
    if wanted.isascii() and wanted.isdigit() and len(wanted) <= len(str(NUMBERED_MAX)):
        number = int(wanted)
        return list(listed[number - 1 : number]) if 1 <= number <= NUMBERED_MAX else []
    return [listed[index] for index in match_titles([each.title for each in listed], wanted)]


def read_window(tx: ReadTx, session_id: str, *, person_id: int, before: int | None, limit: int) -> Window:
    """Return the last messages; with ``before``, the last of those with a smaller number."""
    found = list_transcript(tx, session_id, person_id=person_id, last=limit + 1, before=before)
    return Window(messages=tuple(found[-limit:]), has_earlier=len(found) > limit)


def _find_by_id(tx: ReadTx, wanted: str, *, person_id: int, audience_id: int | None) -> Session | None:
    try:
        session = get_session(tx, parse_session_id(wanted), person_id=person_id)
    except (InvalidValue, NotFound):
        return None
    if session.deleted_at is not None or audience_id not in (None, session.audience_id):
        return None
    return session


def _list(tx: ReadTx, *, person_id: int, audience_id: int | None) -> Sequence[Session]:
    if audience_id is None:
        return list_sessions(tx, person_id=person_id, limit=NAMED_MAX).rows
    if not people.is_member(tx, person_id=person_id, audience_id=audience_id):
        return []
    return list_recent(tx, audience_id=audience_id, limit=NAMED_MAX)
