"""Changes that people make to a session. Each function returns whether it changed anything."""

from keryx.core.conversations.rules.session_settings import (
    ModelSettings,
    Personality,
    encode_model_settings,
    encode_personality,
)
from keryx.core.conversations.rules.title import TitleBy
from keryx.store.codec import clean_text
from keryx.store.database import Tx


def set_title(tx: Tx, session_id: str, *, title: str | None, by: TitleBy | None) -> bool:
    """Set or remove the title; ``by`` is None if and only if the title is."""
    return (
        tx.run("session_changes.set_title", session_id=session_id, title=clean_text(title), title_by=by) == 1
    )


def set_pinned(tx: Tx, session_id: str, *, pinned: bool) -> bool:
    """Pin or unpin a session."""
    return tx.run("session_changes.set_pinned", session_id=session_id, since_at=_since(tx, on=pinned)) == 1


def set_archived(tx: Tx, session_id: str, *, archived: bool) -> bool:
    """Archive a session, or restore it from the archive."""
    return (
        tx.run("session_changes.set_archived", session_id=session_id, since_at=_since(tx, on=archived)) == 1
    )


def set_deleted(tx: Tx, session_id: str, *, deleted: bool) -> bool:
    """Put a session into the bin, or take it out."""
    return tx.run("session_changes.set_deleted", session_id=session_id, since_at=_since(tx, on=deleted)) == 1


def set_project(tx: Tx, session_id: str, project_id: int | None) -> bool:
    """Set or remove the project."""
    return tx.run("session_changes.set_project", session_id=session_id, project_id=project_id) == 1


def set_workspace(tx: Tx, session_id: str, workspace: str | None) -> bool:
    """Set or remove the directory in which turns and processes run."""
    return (
        tx.run("session_changes.set_workspace", session_id=session_id, workspace=clean_text(workspace)) == 1
    )


def set_model(tx: Tx, session_id: str, model: str | None) -> bool:
    """Set the model (None: the configured model)."""
    return tx.run("session_changes.set_model", session_id=session_id, model=clean_text(model)) == 1


def set_model_settings(tx: Tx, session_id: str, settings: ModelSettings | None) -> bool:
    """Set the model settings (None: as configured)."""
    text = None if settings is None else encode_model_settings(settings)
    return tx.run("session_changes.set_model_settings", session_id=session_id, model_settings=text) == 1


def set_personality(tx: Tx, session_id: str, personality: Personality | None) -> bool:
    """Set the personality (None: as configured)."""
    text = None if personality is None else encode_personality(personality)
    return tx.run("session_changes.set_personality", session_id=session_id, personality=text) == 1


def set_flushed_seq(tx: Tx, session_id: str, seq: int) -> bool:
    """Record that memories were saved up to message ``seq``; never lower the number."""
    return tx.run("session_changes.set_flushed_seq", session_id=session_id, seq=seq) == 1


def _since(tx: Tx, *, on: bool) -> int | None:
    return tx.now if on else None
