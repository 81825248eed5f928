"""Whether there is anything to do: asked before a loop writes, because every write wakes all loops."""

from keryx.store.database import ReadTx
from keryx.store.tables import inbox, outbox, turns

__all__ = ["is_due", "is_ready"]


def is_ready(tx: ReadTx, *, session_id: str | None = None) -> bool:
    """Say whether a turn may begin now, in this session or in any."""
    if session_id is None:
        return bool(inbox.list_ready_sessions(tx, limit=1))
    live = turns.find_live_turn(tx, session_id)
    if live is not None and live.state == "running":
        return False
    due = [item for item in inbox.list_ready(tx, session_id) if item.ready_at <= tx.now]
    return any(live is None or item.kind == "approval" for item in due)


def is_due(tx: ReadTx, *, platform: str, account: str) -> bool:
    """Say whether an account has something to send now."""
    return bool(outbox.list_due(tx, platform=platform, account=account, limit=1))
