"""Whether a turn may begin, and in which sessions: the only place that decides it.

Loops and terminals ask before they write, because a look costs no commit. ``begin_turn`` asks for its candidates.
"""

from typing import Final

from keryx.core.conversations.rules.session import SessionId
from keryx.core.turns.rules.inbox import ItemPurpose
from keryx.core.turns.tables import inbox, turns
from keryx.store.database import ReadTx

__all__ = ["list_ready", "may_begin"]

TASKS: Final = 16
"""How many tasks are looked at in one go; the next look finds the others."""


def list_ready(tx: ReadTx, *, session_id: str | None = None, limit: int = 1) -> list[SessionId]:
    """Return sessions in which a turn may begin now, longest waiting first: any, or this one and its tasks.

    With a limit of 0 there is no room. Then only tasks may begin, because the turn that waits for a task has a place
    and would wait for ever.
    """
    if session_id is None:
        return _find(tx, limit=limit) if limit else _find(tx, purpose="task", limit=TASKS)
    live = turns.find_live_turn(tx, session_id)
    if live is None or live.state != "running":
        return _find(tx, session_id=session_id, limit=limit)
    tasks = inbox.list_tasks(tx, session_id)
    return [found for task in tasks for found in _find(tx, session_id=task.session_id, limit=1)]


def may_begin(tx: ReadTx, session_id: str) -> bool:
    """Say whether a turn of this session may begin now."""
    return bool(_find(tx, session_id=session_id, limit=1))


def _find(
    tx: ReadTx, *, session_id: str | None = None, purpose: ItemPurpose | None = None, limit: int
) -> list[SessionId]:
    rows = tx.rows("ready_sessions.list", session_id=session_id, purpose=purpose, limit=limit)
    return [SessionId(found) for found, _since in rows]
