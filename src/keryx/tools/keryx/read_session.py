"""``read_session``: read a conversation; in a chat that other people read, only one with these people."""

from collections.abc import Iterator
from typing import Final

from keryx.core.conversations.rules.message import Message, TextPart, ToolCallPart, preview_of
from keryx.core.conversations.views.find_session import Session, find_named, read_window
from keryx.core.values.graphemes import cut
from keryx.core.values.time_zone import datetime_of, zone_of
from keryx.errors import ToolFailed
from keryx.store.database import ReadTx
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.keryx.store_reader import StoreReader
from keryx.tools.tool import ToolCall

SHOWN: Final = 20
SHOWN_MAX: Final = 50
SEQ_MAX: Final = 2**53
CHARACTERS_MAX: Final = 20_000
"""The size of a window. Each message gets an equal share, up to ``MESSAGE_CHARACTERS_MAX``."""
MESSAGE_CHARACTERS_MAX: Final = 4_000
RESULT_CHARACTERS_MAX: Final = 200


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


def _not_one(wanted: str, found: list[Session]) -> str:
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
