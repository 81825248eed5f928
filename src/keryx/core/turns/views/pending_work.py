"""What the loops have to do: turns that may begin, deliveries that are due, and work that a crash left behind.

The loops and terminals read this before they write, because reading needs no commit.
"""

from typing import Final

from keryx.core.accounts import tables as connector_leases
from keryx.core.conversations.rules.session import SessionId
from keryx.core.deliveries.tables import outbox
from keryx.core.turns.rules.inbox import ItemPurpose
from keryx.core.turns.tables import inbox, turns
from keryx.store.database import ReadTx

TASKS: Final = 16
"""How many delegated tasks one call returns; the next call returns the others."""


def needs_recovery(tx: ReadTx) -> bool:
    """Return whether there is work for ``recover``."""
    return bool(
        turns.list_orphans(tx, limit=1)
        or outbox.list_stuck(tx, limit=1)
        or connector_leases.list_left(tx, limit=1)
    )


def has_due_deliveries(tx: ReadTx, *, platform: str, account: str) -> bool:
    """Return whether a delivery of an account is due."""
    return bool(outbox.list_due(tx, platform=platform, account=account, limit=1))


def list_ready(tx: ReadTx, *, session_id: str | None = None, limit: int = 1) -> list[SessionId]:
    """Return sessions in which a turn may begin now, longest waiting first: any, or this one and its tasks.

    A limit of 0 means that the gateway is full. Then only tasks may begin: the turn that waits for a task occupies a
    place, and would wait for ever.
    """
    if session_id is None:
        return _find(tx, limit=limit) if limit else _find(tx, purpose="task", limit=TASKS)
    live = turns.find_live_turn(tx, session_id)
    if live is None or live.state != "running":
        return _find(tx, session_id=session_id, limit=limit)
    tasks = inbox.list_tasks(tx, session_id)
    return [found for task in tasks for found in _find(tx, session_id=task.session_id, limit=1)]


def may_begin(tx: ReadTx, session_id: str) -> bool:
    """Return whether a turn of this session may begin now."""
    return bool(_find(tx, session_id=session_id, limit=1))


def _find(
    tx: ReadTx, *, session_id: str | None = None, purpose: ItemPurpose | None = None, limit: int
) -> list[SessionId]:
    return tx.values("pending_work.list_ready", session_id=session_id, purpose=purpose, limit=limit)
