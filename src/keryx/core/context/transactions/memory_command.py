"""``/memory``: list, show, edit, forget and restore the notes of this chat's audience, and undo these changes."""

import re
from difflib import get_close_matches
from typing import Final

from keryx.core.context.tables import memories
from keryx.core.context.transactions.manage_memory import edit_memory, forget, get_of_chat, undo_memory
from keryx.core.context.views.prompt_facts import SEARCHED
from keryx.core.conversations.tables import sessions
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    ago,
    say,
    shortly,
)
from keryx.core.people.tables import people
from keryx.errors import InvalidValue
from keryx.store.database import Tx

SHOWN: Final = 20
USAGE: Final = (
    "/memory [words or number]; /memory edit <number> <text>; /memory forget <number>; "
    "/memory restore <number>; /memory undo."
)
_CHANGES: Final = ("edit", "forget", "restore", "undo")
_CHANGE: Final = re.compile(
    rf"({'|'.join(_CHANGES)})\b\s*(?:(?<=\s)([0-9]{{1,18}})\b)?\s*(.*)", re.IGNORECASE | re.DOTALL
)
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_UNDONE: Final = {
    "kept": "Note {id} is no longer kept: {text}",
    "edited": "Note {before} is as it was before it was edited.",
    "forgotten": "Note {id} is kept again: {text}",
    "restored": "Note {id} is forgotten again: {text}",
}


def memory(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show or change the notes of this chat's audience."""
    change = _CHANGE.fullmatch(arguments)
    if change is not None:
        return say(context, _change(tx, context, change))
    if _NUMBER.fullmatch(arguments):
        return say(context, _show(tx, context, int(arguments)))
    return say(context, _list(tx, context, arguments.casefold().split()))


def _list(tx: Tx, context: CommandContext, words: list[str]) -> str:
    session = sessions.get_visible(tx, context.session_id, person_id=context.person.id)
    kept = memories.list_memories(tx, audience_id=session.audience_id, limit=SEARCHED)
    found = [note for note in kept if all(word in note.text.casefold() for word in words)]
    if not found:
        # A word like the name of a change was probably meant as one.
        meant = get_close_matches(words[0], _CHANGES, n=1) if words else []
        hint = f" Did you mean /memory {meant[0]}?" if meant else ""
        return (
            f"Nothing is remembered about that.{hint}"
            if words
            else "Nothing is remembered yet. Ask the agent to remember something."
        )
    lines = [f"{note.id}. {note.text}" for note in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(f"… and {len(found) - SHOWN} more; name words to find them.")
    return "\n".join(lines)


def _show(tx: Tx, context: CommandContext, number: int) -> str:
    """Return a note with its author, time and place, and the note that it replaced."""
    note = get_of_chat(tx, context.session_id, number, person_id=context.person.id)
    who = "" if note.author_id is None else f" by {people.get_person(tx, note.author_id).name}"
    where = "" if note.session_id is None else f", in {note.session_id}"
    place = "" if note.seq is None else f", at message {note.seq}"
    lines = [f"{note.id}. {note.text}", f"Kept {ago(note.created_at, now=tx.now)}{who}{where}{place}."]
    if note.replaces_id is not None:
        before = memories.get_memory(tx, note.replaces_id, person_id=context.person.id)
        lines.append(f"It replaced {before.id}: {shortly(before.text)}")
    if note.forgotten_at is not None:
        lines.append(
            f"Forgotten {ago(note.forgotten_at, now=tx.now)}; /memory restore {note.id} brings it back."
        )
    return "\n".join(lines)


def _change(tx: Tx, context: CommandContext, written: re.Match[str]) -> str:
    what, number, text = written[1].lower(), written[2], written[3].strip()
    if (number is None) != (what == "undo") or bool(text) != (what == "edit"):
        raise InvalidValue(f"/memory {what} is not a valid command. Write {USAGE}")
    person_id = context.person.id
    if number is None:
        return _undo(tx, context)
    note = get_of_chat(tx, context.session_id, int(number), person_id=person_id)
    if what == "edit":
        kept = edit_memory(tx, context.session_id, note.id, text, person_id=person_id)
        return f"Kept as note {kept.memory_id}. /memory undo takes it back."
    is_forgotten = what == "forget"
    if not forget(tx, note.id, person_id=person_id, forgotten=is_forgotten):
        return f"Note {note.id} is {'forgotten' if is_forgotten else 'kept'} already."
    return f"Note {note.id} is {'forgotten' if is_forgotten else 'kept again'}. /memory undo takes it back."


def _undo(tx: Tx, context: CommandContext) -> str:
    undone = undo_memory(tx, context.session_id, person_id=context.person.id)
    if undone is None:
        return "There is nothing to take back."
    note = undone.memory
    return _UNDONE[undone.kind].format(id=note.id, before=note.replaces_id, text=shortly(note.text))
