"""``search_history``, ``read_session`` and ``read_result``: find and read earlier messages, and read long results.

In a chat that other people read, only conversations with these people are found.
"""

from collections.abc import Iterator
from typing import Final

from keryx.core.conversations.rules.message import Message, TextPart, ToolCallPart, preview_of
from keryx.core.conversations.views.find_session import FoundSession, find_named, read_window
from keryx.core.media.rules import WINDOW_MAX
from keryx.core.media.views import read_result
from keryx.core.people.rules.toolset import RESULTS
from keryx.core.search.views.search import search
from keryx.core.values.graphemes import cut
from keryx.core.values.time_zone import datetime_of, zone_of
from keryx.errors import ToolFailed
from keryx.store.database import ReadTx
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.keryx.store_reader import LISTED, StoreReader, session_name
from keryx.tools.tool import ToolCall

OFFSET_MAX: Final = 10**12
SHOWN: Final = 20
SHOWN_MAX: Final = 50
SEQ_MAX: Final = 2**53
CHARACTERS_MAX: Final = 20_000
"""The size of a window. Each message gets an equal share, up to ``MESSAGE_CHARACTERS_MAX``."""
MESSAGE_CHARACTERS_MAX: Final = 4_000
RESULT_CHARACTERS_MAX: Final = 200


class SearchHistory(StoreReader):
    """Finds messages of any conversation of the person."""

    name = "search_history"
    description = (
        "Find what was said before, in any conversation of this person, by words, phrases and filters. Each hit "
        "names its conversation by id, and its message by number, for read_session."
    )
    parameters = {  # noqa: RUF012 - never changed
        "query": Parameter(help="What to look for", required=True)
    }

    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:
        """Return the newest hits with their conversations, without the turn that searches."""
        found = search(
            tx,
            given.text("query"),
            person_id=call.person_id,
            limit=LISTED,
            neighbours=0,
            audience_id=call.audience_id,
            asking=None if call.turn_id is None else (call.session_id, call.turn_id),
        )
        lines = [
            f"{session_name(session.title, session.session_id)}{f' [{hit.seq}]' if hit.seq else ''}: "
            f"{hit.role or 'title'}: {hit.snippet.text}"
            for session in found.sessions
            for hit in session.hits
        ]
        return "\n".join(lines) or "\n".join(["Nothing found.", *found.nothing_because])


class ReadSession(StoreReader):
    """Reads messages of a conversation."""

    name = "read_session"
    description = (
        "Read what was said in a conversation of this person: its last messages, or those before a number."
    )
    parameters = {  # noqa: RUF012 - never changed
        "session": Parameter(help="Its id, its title, or its number in list_sessions", required=True),
        "before": Parameter(kind="integer", help="Only messages before the one with this number"),
        "limit": Parameter(kind="integer", help=f"How many, at most {SHOWN_MAX}; {SHOWN} if left out"),
    }

    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:
        """Return a paragraph for each message, the oldest first."""
        wanted = given.text("session")
        before = given.whole("before", SEQ_MAX, low=1, high=SEQ_MAX)
        limit = given.whole("limit", SHOWN, low=1, high=SHOWN_MAX)
        found = find_named(tx, wanted, person_id=call.person_id, audience_id=call.audience_id)
        if len(found) != 1:
            raise ToolFailed(_not_one(wanted, found))
        [session] = found
        window = read_window(tx, session.id, person_id=call.person_id, before=before, limit=limit)
        room = min(MESSAGE_CHARACTERS_MAX, CHARACTERS_MAX // limit)
        lines = [f"{session.name} ({session.id})", *(_shown(each, room=room) for each in window.messages)]
        if not window.messages:
            lines.append("There are no messages.")
        if window.has_earlier:
            lines.append(f"There is more before it: read with before={window.messages[0].seq}.")
        return "\n".join(lines)


class ReadResult(StoreReader):
    """Shows a window of a long result of the conversation."""

    name = "read_result"
    description = "Read on in a result of this conversation that was too long to be shown whole."
    toolset = RESULTS
    parameters = {  # noqa: RUF012 - never changed
        "result": Parameter(help="Its name, as given where it was cut", required=True),
        "offset": Parameter(
            kind="integer", help="The first character to read; else 0", low=0, high=OFFSET_MAX
        ),
        "limit": Parameter(
            kind="integer", help=f"How many characters; {WINDOW_MAX} where not said", low=1, high=WINDOW_MAX
        ),
    }

    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:
        """Return a window of the result below a heading with its place."""
        name = given.text("result").strip().lower()
        whole = read_result(tx, call.session_id, name)
        if whole is None:
            raise ToolFailed(
                "This conversation has no such result; give the name as written where it was cut."
            )
        first = given.whole("offset", 0)
        end = min(first + given.whole("limit", WINDOW_MAX), len(whole))
        if first >= len(whole):
            raise ToolFailed(f"The result has {len(whole)} characters; give a smaller offset.")
        more = "" if end == len(whole) else f" Read on with offset {end}."
        return f"Characters {first} to {end} of {len(whole)}.{more}\n{whole[first:end]}"


def _not_one(wanted: str, found: list[FoundSession]) -> str:
    if not found:
        return (
            f"There is no conversation {cut(wanted, 60)!r} that may be read here. Give an id or a title as "
            "search_history and list_sessions show it."
        )
    names = "; ".join(f"{each.name} ({each.id})" for each in found[:SHOWN])
    return f"Several conversations are called so; give the id of one: {names}"


def _shown(message: Message, *, room: int) -> str:
    author = f" ({message.author})" if message.author else ""
    at = datetime_of(message.created_at, zone_of("UTC"))
    return (
        f"[{message.seq}] {at:%Y-%m-%d %H:%M} {message.role}{author}: {cut(' '.join(_pieces(message)), room)}"
    )


def _pieces(message: Message) -> Iterator[str]:
    """Yield the texts of a message, and a short note for each call, result and attachment."""
    for part in message.parts:
        match part:
            case TextPart():
                yield part.text
            case ToolCallPart():
                yield f"[calls {part.name}]"
            case _:
                yield preview_of((part,), RESULT_CHARACTERS_MAX)
