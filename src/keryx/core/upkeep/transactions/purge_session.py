"""Delete sessions for good: one at its owner's request, and those that were in the bin long enough.

Messages that forks still show are copied into the forks first. Each subject deletes its own rows.
A message of a purged session that its platform delivers again counts as new.
"""

from typing import Final

from keryx.core.approvals.transactions import purge as approvals
from keryx.core.context.transactions import purge as context
from keryx.core.conversations.rules.session import BIN_DAYS, PRUNE_DAYS, SessionId, days_before
from keryx.core.conversations.tables import purge as session_bin
from keryx.core.conversations.tables import sessions
from keryx.core.conversations.transactions import purge as conversations
from keryx.core.conversations.transactions.change_session import move_to_bin
from keryx.core.conversations.transactions.session_guard import Actor, lock_idle, require_idle, require_owner
from keryx.core.deliveries.transactions import purge as deliveries
from keryx.core.media import transactions as media
from keryx.core.processes.transactions import purge as processes
from keryx.core.schedules.transactions import purge as schedules
from keryx.core.turns.transactions import purge as turns
from keryx.core.turns.transactions.flush_session import give_way
from keryx.errors import SessionBusy
from keryx.store.database import Tx
from keryx.values import dataclass

PURGES: Final = (
    # In the order of foreign keys. Search learns of a purge from the feed. People, accounts and upkeep have no rows of
    # sessions.
    media.purge,
    approvals.purge,
    deliveries.purge,
    schedules.purge,
    turns.purge,
    processes.purge,
    context.purge,
    conversations.purge,
)
"""How each subject deletes its rows of a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """A deleted session: how many messages it had, and how many were copied into its forks."""

    session_id: SessionId
    messages: int
    copied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BinEmptied:
    """The purged sessions, and those that must wait because a turn, a delivery or a process of theirs runs."""

    purged: tuple[Purged, ...]
    busy: tuple[SessionId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """The sessions moved into the bin, and those that must wait because a turn of theirs runs."""

    binned: tuple[SessionId, ...]
    busy: tuple[SessionId, ...]


def purge_session(tx: Tx, session_id: SessionId, *, person_id: int) -> Purged:
    """Delete a session for good, for its owner; raises ``SessionBusy`` while a turn, delivery or process of it runs."""
    session = lock_idle(tx, session_id, actor=Actor(person_id=person_id, give_way=give_way))
    require_owner(tx, session, person_id=person_id)
    return _purge(tx, session)


def empty_bin(tx: Tx, *, days: int = BIN_DAYS, limit: int = 20) -> BinEmptied:
    """Purge up to ``limit`` sessions that have been in the bin for ``days`` days."""
    purged: list[Purged] = []
    busy: list[SessionId] = []
    for session_id in session_bin.list_in_bin(tx, before=days_before(tx.now, days), limit=limit):
        try:
            require_idle(tx, session_id, give_way=give_way)
            purged.append(_purge(tx, sessions.get_session(tx, session_id)))
        except SessionBusy:
            busy.append(session_id)
    return BinEmptied(purged=tuple(purged), busy=tuple(busy))


def prune(
    tx: Tx, *, person_id: int, days: int = PRUNE_DAYS, platform: str | None = None, limit: int = 200
) -> Pruned:
    """Move up to ``limit`` of a person's closed sessions without recent activity into the bin; never a pinned one.

    Their forks, and the sessions after a reset, are judged by their own activity.
    """
    binned: list[SessionId] = []
    busy: list[SessionId] = []
    before = days_before(tx.now, days)
    for session_id in session_bin.list_prunable(
        tx, owner_id=person_id, before=before, platform=platform, limit=limit
    ):
        try:
            require_idle(tx, session_id, give_way=give_way)
        except SessionBusy:
            busy.append(session_id)
        else:
            move_to_bin(tx, session_id)
            binned.append(session_id)
    return Pruned(binned=tuple(binned), busy=tuple(busy))


def _purge(tx: Tx, session: sessions.Session) -> Purged:
    """Purge a locked session without a live turn."""
    session_id = session.id
    for require_purgeable in (deliveries.require_purgeable, processes.require_purgeable):
        require_purgeable(tx, session_id)
    copied = conversations.hand_over(tx, session_id)
    for purge in PURGES:
        purge(tx, session_id)
    conversations.add_purge_events(tx, session.audience_id)
    return Purged(session_id=session_id, messages=session.message_total, copied=copied)
