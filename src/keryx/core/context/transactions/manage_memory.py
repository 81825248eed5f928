"""Keep, edit, forget and restore notes, for the audience that heard them and nobody else.

Nothing is overwritten: an edit adds a note that replaces the old one, and every change can be undone, the last one
first. No two notes that are kept say the same.
"""

from keryx.core.context.tables import memories
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import feed, sessions
from keryx.core.people.tables import people
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import Tx
from keryx.values import dataclass

MEMORY_LENGTH_MAX = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteKept:
    """The number of the note; ``is_new`` is False if the note was kept before."""

    memory_id: int
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUndone:
    """The undone change, and its note."""

    kind: memories.ChangeKind
    memory: memories.Memory


def remember(
    tx: Tx,
    session_id: SessionId,
    text: str,
    *,
    person_id: int,
    origin: memories.Origin | None = None,
) -> NoteKept:
    """Keep a note of a session for its audience. The default ``origin`` is the person and the last message."""
    said = _checked(text)
    session = sessions.get_visible(tx, session_id, person_id=person_id)
    people.lock_audience(tx, session.audience_id)
    known = memories.find_duplicate(tx, said, audience_id=session.audience_id)
    if known is not None:
        return NoteKept(memory_id=known, is_new=False)
    if origin is None:
        origin = memories.Origin(author_id=person_id, session_id=session_id, seq=session.last_seq or None)
    memory_id = memories.add_memory(tx, audience_id=session.audience_id, text=said, origin=origin)
    memory = memories.get_memory(tx, memory_id, person_id=person_id)
    _record_change(tx, memory, "kept", person_id=person_id)
    return NoteKept(memory_id=memory_id, is_new=True)


def edit_memory(tx: Tx, session_id: SessionId, memory_id: int, text: str, *, person_id: int) -> NoteKept:
    """Replace a note by a new one with another text and another number.

    Raise ``InvalidValue`` if another note has this text, or if the note is forgotten.
    """
    said = _checked(text)
    old = get_of_chat(tx, session_id, memory_id, person_id=person_id)
    people.lock_audience(tx, old.audience_id)
    if old.text == said:
        return NoteKept(memory_id=memory_id, is_new=False)
    _refuse_duplicate(tx, said, old)
    if not memories.set_forgotten(tx, memory_id, forgotten=True):
        raise InvalidValue(f"Note {memory_id} is forgotten; /memory restore {memory_id} brings it back.")
    origin = memories.Origin(author_id=person_id, session_id=session_id)
    new_id = memories.add_memory(
        tx, audience_id=old.audience_id, text=said, origin=origin, replaces_id=memory_id
    )
    new = memories.get_memory(tx, new_id, person_id=person_id)
    _record_change(tx, new, "edited", person_id=person_id)
    return NoteKept(memory_id=new_id, is_new=True)


def forget(tx: Tx, memory_id: int, *, person_id: int, forgotten: bool = True) -> bool:
    """Forget a note that the person may see, or restore it. Return whether anything changed.

    Raise ``InvalidValue`` if a kept note says the same as the note to restore.
    """
    memory = memories.get_memory(tx, memory_id, person_id=person_id)
    people.lock_audience(tx, memory.audience_id)
    if not forgotten:
        _refuse_duplicate(tx, memory.text, memory)
    if not memories.set_forgotten(tx, memory_id, forgotten=forgotten):
        return False
    _record_change(tx, memory, "forgotten" if forgotten else "restored", person_id=person_id)
    return True


def undo_memory(tx: Tx, session_id: SessionId, *, person_id: int) -> MemoryUndone | None:
    """Undo the last change of the notes of a session's audience; return None if there is none left."""
    audience_id = sessions.get_visible(tx, session_id, person_id=person_id).audience_id
    people.lock_audience(tx, audience_id)
    change = memories.find_last_change(tx, audience_id)
    if change is None:
        return None
    memory = memories.get_memory(tx, change.memory_id, person_id=person_id)
    # Changes are undone from the last one, each by its opposite. So no undo makes a duplicate of a note.
    memories.set_forgotten(tx, memory.id, forgotten=change.kind != "forgotten")
    if memory.replaces_id is not None and change.kind == "edited":
        memories.set_forgotten(tx, memory.replaces_id, forgotten=False)
    memories.set_undone(tx, change.id)
    _add_fact(tx, memory, person_id=person_id)
    return MemoryUndone(kind=change.kind, memory=memory)


def get_of_chat(tx: Tx, session_id: SessionId, memory_id: int, *, person_id: int) -> memories.Memory:
    """Return a note of the session's audience, forgotten or not; the notes of other audiences are not found."""
    audience_id = sessions.get_visible(tx, session_id, person_id=person_id).audience_id
    memory = memories.get_memory(tx, memory_id, person_id=person_id)
    if memory.audience_id != audience_id:
        raise NotFound(f"There is no note {memory_id} that you may see here.")
    return memory


def _checked(text: str) -> str:
    said = text.strip()
    if not 1 <= len(said) <= MEMORY_LENGTH_MAX:
        raise InvalidValue(f"a memory of {len(text)} characters: give 1 to {MEMORY_LENGTH_MAX}")
    return said


def _refuse_duplicate(tx: Tx, text: str, memory: memories.Memory) -> None:
    duplicate = memories.find_duplicate(tx, text, audience_id=memory.audience_id, except_id=memory.id)
    if duplicate is not None:
        raise InvalidValue(f"Note {duplicate} says that already.")


def _record_change(tx: Tx, memory: memories.Memory, kind: memories.ChangeKind, *, person_id: int) -> None:
    memories.add_change(
        tx, audience_id=memory.audience_id, memory_id=memory.id, kind=kind, person_id=person_id
    )
    _add_fact(tx, memory, person_id=person_id)


def _add_fact(tx: Tx, memory: memories.Memory, *, person_id: int) -> None:
    if memory.session_id is None:
        # The session was purged, so the fact goes to the person's feed.
        feed.add_personal_event(tx, person_id, "memory", memory.id)
    else:
        feed.add_event(tx, memory.session_id, "memory", memory.id)
