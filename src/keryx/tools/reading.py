"""``read_session``: what was said in another conversation, a window at a time.

In a chat that others read, only conversations with these others are found.
"""

from collections.abc import Iterator
from typing import Final

from keryx.domain.graphemes import cut
from keryx.domain.message import Message, TextPart, ToolCallPart, preview_of
from keryx.domain.zone import datetime_of, zone_of
from keryx.store.database import ReadTx
from keryx.tools.told import Told
from keryx.tools.tool import ToolFailed, Use
from keryx.views.reading import Named, find_named, read_window

SHOWN: Final = 20
SHOWN_MAX: Final = 50
SEQ_MAX: Final = 2**53
CHARACTERS_MAX: Final = 20_000
"""Of one window; each message gets an equal part, and not more than it can use."""
MESSAGE_CHARACTERS_MAX: Final = 4_000
RESULT_CHARACTERS_MAX: Final = 200


class ReadSession(Told):
    """Reads a conversation."""

    name = "read_session"
    description = (
        "Read what was said in a conversation of this person: its last messages, or those before a number."
    )
    parameters = {  # noqa: RUF012 - never changed
        "session": {
            "type": "string",
            "description": "Its id, its title, or its number in list_sessions",
        },
        "before": {"type": "integer", "description": "Only messages before the one with this number"},
        "limit": {"type": "integer", "description": f"How many, at most {SHOWN_MAX}; {SHOWN} if left out"},
    }
    optional = ("before", "limit")

    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return the messages, a paragraph each, oldest first."""
        wanted = use.text("session")
        before = use.number("before", otherwise=SEQ_MAX, most=SEQ_MAX)
        limit = use.number("limit", otherwise=SHOWN, most=SHOWN_MAX)
        found = find_named(tx, wanted, person_id=use.person_id, audience_id=use.audience_id)
        if len(found) != 1:
            raise ToolFailed(_not_one(wanted, found))
        [session] = found
        window = read_window(tx, session.id, person_id=use.person_id, before=before, limit=limit)
        room = min(MESSAGE_CHARACTERS_MAX, CHARACTERS_MAX // limit)
        lines = [f"{session.name} ({session.id})", *(_shown(each, room=room) for each in window.messages)]
        if not window.messages:
            lines.append("Nothing is there.")
        if window.has_earlier:
            lines.append(f"There is more before it: read with before={window.messages[0].seq}.")
        return "\n".join(lines)


def _not_one(wanted: str, found: list[Named]) -> str:
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
    """Yield what the message says, and of calls, results and media a word each."""
    for part in message.parts:
        match part:
            case TextPart():
                yield part.text
            case ToolCallPart():
                yield f"[calls {part.name}]"
            case _:
                yield preview_of((part,), RESULT_CHARACTERS_MAX)
