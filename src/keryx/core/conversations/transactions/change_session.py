"""Change the title, lists, tags, model and personality of a session, and save drafts and read marks.

None of these changes is activity: ``last_active_at`` stays. All of them are reversible; only ``purge_session`` deletes.
"""

from collections.abc import Callable
from typing import Concatenate, ParamSpec

from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_settings import ModelSettings, Personality
from keryx.core.conversations.rules.title import TitleBy, clean_title, may_retitle
from keryx.core.conversations.tables import (
    drafts,
    feed,
    projects,
    session_changes,
    session_keys,
    sessions,
    tags,
)
from keryx.core.conversations.transactions.session_guard import Actor, lock_idle, require_owner
from keryx.core.schedules import tables as schedules
from keryx.core.turns.tables import inbox
from keryx.errors import InvalidValue
from keryx.store.database import Tx
from keryx.values import dataclass

P = ParamSpec("P")

TAG_LENGTH_MAX = 64
DELETED_NOTE = "the conversation was deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """The draft was saved elsewhere in the meantime; nothing was stored."""

    current: drafts.Draft


def rename(
    tx: Tx, session_id: SessionId, title: str | None, *, person_id: int, by: TitleBy = "person"
) -> bool:
    """Set or remove the title of a session; return whether it changed.

    Only a person changes a person's title. Raises ``InvalidValue`` for an empty title.
    """
    sessions.lock_session(tx, session_id)
    session = sessions.get_visible(tx, session_id, person_id=person_id)
    if not may_retitle(session.title_by, by):
        return False
    new = None if title is None else clean_title(title)
    changed = session_changes.set_title(tx, session_id, title=new, by=None if new is None else by)
    return _add_event(tx, session_id, changed=changed)


def pin(tx: Tx, session_id: SessionId, *, person_id: int, pinned: bool = True) -> bool:
    """Pin a session to the top of the lists, or unpin it; return whether anything changed."""
    return _change(tx, session_id, person_id, session_changes.set_pinned, pinned=pinned)


def archive(tx: Tx, session_id: SessionId, *, person_id: int, archived: bool = True) -> bool:
    """Archive a session, or restore it from the archive; return whether anything changed."""
    return _change(tx, session_id, person_id, session_changes.set_archived, archived=archived)


def delete(tx: Tx, session_id: SessionId, *, actor: Actor) -> bool:
    """Put a session into the bin; return False if it was there already.

    Its keys are removed and its ready inbox items are cancelled. Raises ``SessionBusy`` while it has a live turn.
    """
    session = lock_idle(tx, session_id, actor=actor)
    require_owner(tx, session, person_id=actor.person_id)
    return move_to_bin(tx, session_id)


def move_to_bin(tx: Tx, session_id: SessionId) -> bool:
    """Put a locked, idle session into the bin, as ``delete`` does, without a check of the person."""
    if not session_changes.set_deleted(tx, session_id, deleted=True):
        return False
    for item in inbox.list_ready(tx, session_id):
        inbox.finish(tx, item.id, fate="cancelled", note=DELETED_NOTE)
        schedules.end_fire_of_inbox(tx, item.id, state="failed", note=DELETED_NOTE)
        feed.add_event(tx, session_id, "inbox", item.id)
    session_keys.remove_keys(tx, session_id)
    if sessions.close_session(tx, session_id, reason="deleted"):
        feed.add_event(tx, session_id, "session.closed")
    return _add_event(tx, session_id, changed=True)


def restore(tx: Tx, session_id: SessionId, *, person_id: int) -> bool:
    """Take a session out of the bin, and open it if it was open before; return whether it was in the bin.

    No key points to it until ``/resume``: its chats may have other sessions now.
    """
    sessions.lock_session(tx, session_id)
    session = sessions.get_visible(tx, session_id, person_id=person_id)
    require_owner(tx, session, person_id=person_id)
    if not session_changes.set_deleted(tx, session_id, deleted=False):
        return False
    if session.close_reason == "deleted" and sessions.reopen_session(tx, session_id):
        feed.add_event(tx, session_id, "session.opened")
    return _add_event(tx, session_id, changed=True)


def close(tx: Tx, session_id: SessionId, *, person_id: int, reason: str) -> bool:
    """Close a session and remove its keys; return whether it was open."""
    sessions.get_visible(tx, session_id, person_id=person_id)
    if not sessions.close_session(tx, session_id, reason=reason):
        return False
    session_keys.remove_keys(tx, session_id)
    feed.add_event(tx, session_id, "session.closed")
    return True


def tag(tx: Tx, session_id: SessionId, text: str, *, person_id: int) -> bool:
    """Add a tag; return False if the session has it. Raises ``InvalidValue`` for an empty or overlong tag."""
    word = clean_tag(text)
    return _change(tx, session_id, person_id, tags.add_tag, word)


def untag(tx: Tx, session_id: SessionId, text: str, *, person_id: int) -> bool:
    """Remove a tag; return whether the session had it."""
    word = clean_tag(text)
    return _change(tx, session_id, person_id, tags.remove_tag, word)


def clean_tag(text: str) -> str:
    """Return a tag in its stored form: one line, lower case, without ``#``."""
    word = " ".join(text.split()).removeprefix("#").strip().casefold()
    if not 1 <= len(word) <= TAG_LENGTH_MAX:
        raise InvalidValue(f"tag {text[:80]!r}: give 1 to {TAG_LENGTH_MAX} characters")
    return word


def set_project(tx: Tx, session_id: SessionId, project_id: int | None, *, person_id: int) -> bool:
    """Set the project of a session to one of the person's projects, or to none; return whether it changed."""
    if project_id is not None:
        projects.get_project(tx, project_id, owner_id=person_id)
    return _change(tx, session_id, person_id, session_changes.set_project, project_id)


def set_workspace(tx: Tx, session_id: SessionId, workspace: str | None, *, person_id: int) -> bool:
    """Set the directory in which the session's turns and processes run; return whether it changed."""
    return _change(tx, session_id, person_id, session_changes.set_workspace, workspace)


def set_model(tx: Tx, session_id: SessionId, model: str | None, *, person_id: int) -> bool:
    """Set the model of the session (None: the configured model); return whether it changed."""
    name = ModelSettings(model=model).model
    return _change(tx, session_id, person_id, session_changes.set_model, name)


def set_model_settings(
    tx: Tx, session_id: SessionId, settings: ModelSettings | None, *, person_id: int
) -> bool:
    """Set the model settings of the session (None: as configured); return whether they changed."""
    return _change(tx, session_id, person_id, session_changes.set_model_settings, settings)


def set_personality(
    tx: Tx, session_id: SessionId, personality: Personality | None, *, person_id: int
) -> bool:
    """Set the personality of the session (None: as configured); return whether it changed."""
    return _change(tx, session_id, person_id, session_changes.set_personality, personality)


def mark_read(tx: Tx, session_id: SessionId, *, person_id: int, seq: int) -> bool:
    """Mark a session as read up to a message; return False if the mark was there or further."""
    session = sessions.get_visible(tx, session_id, person_id=person_id)
    if not 0 <= seq <= session.last_seq:
        raise InvalidValue(f"read mark {seq}: the last message of session {session_id} is {session.last_seq}")
    marked = drafts.mark_read(tx, person_id=person_id, session_id=session_id, seq=seq)
    if marked:
        feed.add_personal_event(tx, person_id, "read", seq)
    return marked


def save_draft(tx: Tx, session_id: SessionId, text: str, *, person_id: int, revision: int) -> int | Stale:
    """Store a draft if ``revision`` is the last stored revision (0: no draft); return the new revision."""
    sessions.get_visible(tx, session_id, person_id=person_id)
    saved = drafts.save_draft(tx, person_id=person_id, session_id=session_id, text=text, revision=revision)
    if saved is None:
        current = drafts.find_draft(tx, person_id=person_id, session_id=session_id)
        assert current is not None
        return Stale(current=current)
    feed.add_personal_event(tx, person_id, "draft", saved)
    return saved


def _change(
    tx: Tx,
    session_id: SessionId,
    person_id: int,
    change: Callable[Concatenate[Tx, str, P], bool],
    *args: P.args,
    **named: P.kwargs,
) -> bool:
    """Make a change that anyone who sees the session may make."""
    sessions.get_visible(tx, session_id, person_id=person_id)
    return _add_event(tx, session_id, changed=change(tx, session_id, *args, **named))


def _add_event(tx: Tx, session_id: SessionId, *, changed: bool) -> bool:
    if changed:
        feed.add_event(tx, session_id, "session.changed")
    return changed
