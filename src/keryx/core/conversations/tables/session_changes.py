"""What people set on a session. None of it moves its last activity; each call says whether anything changed."""

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
    """Name a session; ``by`` is None exactly where the title is."""
    return (
        tx.run("session_changes.set_title", session_id=session_id, title=clean_text(title), title_by=by) == 1
    )


def set_pinned(tx: Tx, session_id: str, *, pinned: bool) -> bool:
    """Pin a session or let it go."""
    return tx.run("session_changes.set_pinned", session_id=session_id, since_at=_since(tx, on=pinned)) == 1


def set_archived(tx: Tx, session_id: str, *, archived: bool) -> bool:
    """Take a session out of the lists or put it back."""
    return (
        tx.run("session_changes.set_archived", session_id=session_id, since_at=_since(tx, on=archived)) == 1
    )


def set_deleted(tx: Tx, session_id: str, *, deleted: bool) -> bool:
    """Put a session into the bin or take it out."""
    return tx.run("session_changes.set_deleted", session_id=session_id, since_at=_since(tx, on=deleted)) == 1


def set_project(tx: Tx, session_id: str, project_id: int | None) -> bool:
    """Put a session into a project, or into none."""
    return tx.run("session_changes.set_project", session_id=session_id, project_id=project_id) == 1


def set_workspace(tx: Tx, session_id: str, workspace: str | None) -> bool:
    """Set the directory in which turns and processes of a session run."""
    return (
        tx.run("session_changes.set_workspace", session_id=session_id, workspace=clean_text(workspace)) == 1
    )


def set_model(tx: Tx, session_id: str, model: str | None) -> bool:
    """Set the model that answers in a session; None for the configured one."""
    return tx.run("session_changes.set_model", session_id=session_id, model=clean_text(model)) == 1


def set_model_settings(tx: Tx, session_id: str, settings: ModelSettings | None) -> bool:
    """Set how the model is asked in a session; None for as configured."""
    text = None if settings is None else encode_model_settings(settings)
    return tx.run("session_changes.set_model_settings", session_id=session_id, model_settings=text) == 1


def set_personality(tx: Tx, session_id: str, personality: Personality | None) -> bool:
    """Set how the agent speaks in a session; None for as configured."""
    text = None if personality is None else encode_personality(personality)
    return tx.run("session_changes.set_personality", session_id=session_id, personality=text) == 1


def set_flushed_seq(tx: Tx, session_id: str, seq: int) -> bool:
    """Note how far a session was looked through for memories; never moves backwards."""
    return tx.run("session_changes.set_flushed_seq", session_id=session_id, seq=seq) == 1


def _since(tx: Tx, *, on: bool) -> int | None:
    return tx.now if on else None
