"""Whether there is anything to do: asked before a loop writes, because a look costs no commit."""

from keryx.domain.session import SessionId
from keryx.store.database import ReadTx
from keryx.store.tables import inbox, leases, outbox, turns

__all__ = ["is_due", "is_left_behind", "list_ready"]

TASKS = 16
"""How many tasks are looked at in one go; the next look finds the others."""


def list_ready(tx: ReadTx, *, session_id: SessionId | None = None, limit: int = 1) -> list[SessionId]:
    """Return sessions in which a turn may begin now, longest waiting first: any, or this one and what it gave away.

    Where there is no room, only tasks may begin: who waits for them has a place, and would wait for ever.
    """
    if session_id is None:
        found = (
            inbox.list_ready_sessions(tx, limit=limit) if limit else inbox.list_ready_tasks(tx, limit=TASKS)
        )
        return list(map(SessionId, found))
    live = turns.find_live_turn(tx, session_id)
    if live is not None and live.state == "running":
        tasks = inbox.list_tasks(tx, session_id)
        return [
            SessionId(task.session_id) for task in tasks if task.state == "ready" and task.ready_at <= tx.now
        ]
    if not limit:
        return []
    due = [item for item in inbox.list_ready(tx, session_id) if item.ready_at <= tx.now]
    return [session_id] if any(live is None or item.kind == "approval" for item in due) else []


def is_left_behind(tx: ReadTx) -> bool:
    """Say whether a crash left something to take up."""
    return bool(
        turns.list_orphans(tx, limit=1) or outbox.list_stuck(tx, limit=1) or leases.list_left(tx, limit=1)
    )


def is_due(tx: ReadTx, *, platform: str, account: str) -> bool:
    """Say whether an account has something to send now."""
    return bool(outbox.list_due(tx, platform=platform, account=account, limit=1))
