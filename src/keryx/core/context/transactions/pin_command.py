"""``/pin``: protect messages from being summarised.

A pin belongs to the session in which it was made, also on a message that a fork inherited: forks begin without pins. A
message that ``/undo`` takes back keeps its pin.
"""

import re
from collections.abc import Sequence
from typing import Final

from keryx.core.context.rules.cover import Cover
from keryx.core.context.tables import pins
from keryx.core.context.transactions.cover_messages import active_covers
from keryx.core.conversations.rules.branch import Segment
from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import branch_paths, branches, feed, sessions
from keryx.core.conversations.transactions.command_context import CommandContext, CommandOutcome, say, shortly
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import Tx

SHOWN: Final = 20
LOOKED_BACK: Final = 50
"""How many messages are searched for the last answer."""
USAGE: Final = "/pin [number]; /pin list; /pin remove <number>."
NOTHING_PINNED: Final = "Nothing is pinned here. /pin pins the last answer, /pin <number> another message."
NO_ANSWER: Final = "There is no answer here to pin yet. /pin <number> pins another message."
COVERED: Final = "A summary covers it now; /compress undo takes the newest summary back."
_WRITTEN: Final = re.compile(r"(list)|(?:(remove)\s+)?([0-9]{1,18})", re.IGNORECASE)


def pin(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Pin the last answer or the message with a number, list the pinned messages, or remove a pin."""
    session = sessions.get_visible(tx, context.session_id, person_id=context.person.id)
    shown = branches.list_path(tx, session_id=session.id, branch_no=session.active_branch_no)
    if not arguments:
        answer = _last_answer(tx, shown)
        return say(context, NO_ANSWER if answer is None else _pin(tx, context, session, answer.seq))
    written = _WRITTEN.fullmatch(arguments)
    if written is None:
        raise InvalidValue(f"/pin {shortly(arguments)} is not a valid command. Write {USAGE}")
    is_list, removes, number = written.groups()
    if is_list:
        return say(context, _list(tx, session, shown))
    if removes:
        return say(context, _remove(tx, context, int(number)))
    return say(context, _pin(tx, context, session, int(number)))


def pin_message(tx: Tx, session_id: SessionId, seq: int, *, person_id: int, pinned: bool = True) -> bool:
    """Pin a message of the active branch, or remove a pin. Return whether anything changed.

    Raise ``NotFound`` if the person may not see the session, or the branch has no message with this number.
    """
    session = sessions.lock_session(tx, session_id)
    sessions.get_visible(tx, session_id, person_id=person_id)
    if pinned:
        shown = branches.list_path(tx, session_id=session_id, branch_no=session.active_branch_no)
        if branch_paths.find_message(tx, shown, seq) is None:
            raise NotFound(
                f"There is no message {seq} in this conversation. /pin without a number pins the last answer."
            )
        changed = pins.add_pin(tx, session_id, seq, person_id=person_id)
    else:
        changed = pins.remove_pin(tx, session_id, seq)
    if changed:
        feed.add_event(tx, session_id, "session.changed")
    return changed


def _pin(tx: Tx, context: CommandContext, session: sessions.Session, seq: int) -> str:
    if not pin_message(tx, context.session_id, seq, person_id=context.person.id):
        return f"Message {seq} is pinned already."
    reply = f"Message {seq} is pinned: no summary will cover it. /pin remove {seq} removes the pin."
    return (
        f"{reply} {COVERED}"
        if _is_covered(active_covers(tx, session.id, session.active_branch_no), seq)
        else reply
    )


def _remove(tx: Tx, context: CommandContext, seq: int) -> str:
    if not pin_message(tx, context.session_id, seq, person_id=context.person.id, pinned=False):
        return f"Message {seq} is not pinned. /pin list shows the pinned messages."
    return f"Message {seq} is no longer pinned."


def _list(tx: Tx, session: sessions.Session, shown: Sequence[Segment]) -> str:
    found = [
        message
        for seq in pins.list_pins(tx, session.id)
        if (message := branch_paths.find_message(tx, shown, seq)) is not None
    ]
    if not found:
        return NOTHING_PINNED
    covers = active_covers(tx, session.id, session.active_branch_no)
    lines = []
    for message in found[-SHOWN:]:
        note = " (a summary covers it)" if _is_covered(covers, message.seq) else ""
        lines.append(f"{message.seq}. {message.role}: {shortly(message.text)}{note}")
    if len(found) > SHOWN:
        lines.insert(0, f"{len(found) - SHOWN} earlier ones, and:")
    return "\n".join(lines)


def _last_answer(tx: Tx, shown: Sequence[Segment]) -> Message | None:
    """Return the last message of the agent that has text."""
    for each in reversed(branch_paths.list_tail(tx, shown, limit=LOOKED_BACK)):
        message = branch_paths.find_message(tx, shown, each.seq) if each.role == "assistant" else None
        if message is not None and message.text:
            return message
    return None


def _is_covered(covers: Sequence[Cover], seq: int) -> bool:
    return any(cover.first_seq <= seq <= cover.last_seq for cover in covers)
