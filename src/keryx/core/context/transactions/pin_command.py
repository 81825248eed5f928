"""``/pin``: which messages stay as they are when what came before is summarised."""

import re
from collections.abc import Sequence
from typing import Final

from keryx.core.context.rules.cover import Cover
from keryx.core.context.tables import pins
from keryx.core.context.transactions.cover_messages import list_holding
from keryx.core.context.transactions.pin_message import pin_message
from keryx.core.conversations.rules.branch import Segment
from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.tables import branch_paths, branches, sessions
from keryx.core.conversations.transactions.command_context import CommandContext, CommandOutcome, say, shortly
from keryx.errors import InvalidValue
from keryx.store.database import Tx

SHOWN: Final = 20
LOOKED_BACK: Final = 50
"""How many messages are looked through for the last answer."""
USAGE: Final = "/pin [number]; /pin list; /pin remove <number>."
NOTHING_PINNED: Final = "Nothing is pinned here. /pin pins the last answer, /pin <number> another message."
NO_ANSWER: Final = "There is no answer here to pin yet. /pin <number> pins another message."
COVERED: Final = "A summary stands for it now; /compress undo takes the newest summary back."
_WRITTEN: Final = re.compile(r"(list)|(?:(remove)\s+)?([0-9]{1,18})", re.IGNORECASE)


def pin(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Pin the last answer or the message with a number, list what is pinned, or take a pin away."""
    session = sessions.get_visible(tx, context.session_id, person_id=context.person.id)
    shown = branches.list_path(tx, session_id=session.id, branch_no=session.active_branch_no)
    if not arguments:
        answer = _last_answer(tx, shown)
        return say(context, NO_ANSWER if answer is None else _pin(tx, context, session, answer.seq))
    written = _WRITTEN.fullmatch(arguments)
    if written is None:
        raise InvalidValue(f"/pin {shortly(arguments)} is not written so: {USAGE}")
    is_list, removes, number = written.groups()
    if is_list:
        return say(context, _list(tx, session, shown))
    if removes:
        return say(context, _remove(tx, context, int(number)))
    return say(context, _pin(tx, context, session, int(number)))


def _pin(tx: Tx, context: CommandContext, session: sessions.Session, seq: int) -> str:
    if not pin_message(tx, context.session_id, seq, person_id=context.person.id):
        return f"Message {seq} is pinned already."
    reply = f"Message {seq} is pinned: summaries leave it as it is. /pin remove {seq} takes the pin away."
    return f"{reply} {COVERED}" if _stands(list_holding(tx, session), seq) else reply


def _remove(tx: Tx, context: CommandContext, seq: int) -> str:
    if not pin_message(tx, context.session_id, seq, person_id=context.person.id, pinned=False):
        return f"Message {seq} is not pinned. /pin list shows what is."
    return f"Message {seq} is no longer pinned."


def _list(tx: Tx, session: sessions.Session, shown: Sequence[Segment]) -> str:
    """Return what is pinned on the branch that is shown, the newest last."""
    found = [
        message
        for seq in pins.list_pins(tx, session.id)
        if (message := branch_paths.find_message(tx, shown, seq)) is not None
    ]
    if not found:
        return NOTHING_PINNED
    covers = list_holding(tx, session)
    lines = []
    for message in found[-SHOWN:]:
        note = " (a summary stands for it)" if _stands(covers, message.seq) else ""
        lines.append(f"{message.seq}. {message.role}: {shortly(message.text)}{note}")
    if len(found) > SHOWN:
        lines.insert(0, f"{len(found) - SHOWN} earlier ones, and:")
    return "\n".join(lines)


def _last_answer(tx: Tx, shown: Sequence[Segment]) -> Message | None:
    """Return the last message in which the agent said something."""
    for each in reversed(branch_paths.list_tail(tx, shown, limit=LOOKED_BACK)):
        message = branch_paths.find_message(tx, shown, each.seq) if each.role == "assistant" else None
        if message is not None and message.text:
            return message
    return None


def _stands(covers: Sequence[Cover], seq: int) -> bool:
    return any(cover.first_seq <= seq <= cover.last_seq for cover in covers)
