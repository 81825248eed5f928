"""Recover after a crash: turns without a holder, deliveries without a sender, addresses without a reader.

Runs at the start and at intervals; several gateways may run it at once. A call handles a bounded batch. The caller
repeats it until nothing is found.
"""

from keryx.config import Settings
from keryx.core.conversations.rules.message import NewMessage, TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import sessions
from keryx.core.deliveries.rules.delivery import Unknown
from keryx.core.deliveries.tables import outbox
from keryx.core.deliveries.transactions.claim_deliveries import settle
from keryx.core.deliveries.transactions.retire_address import retire_addresses
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.fail_turn import (
    Failure,
    give_items_back,
    give_up,
    may_retry,
    roll_back_turn,
    stop_turn,
)
from keryx.core.turns.transactions.finish_turn import end_turn
from keryx.core.turns.transactions.record_step import close_unknown_steps
from keryx.core.turns.views.turn import text_so_far
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

BATCH = 20
HOLDER = "recover"
GIVEN_UP = Failure(reason="Keryx stopped several times while answering; send it again if it still matters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """How much was recovered."""

    turns: int
    deliveries: int
    addresses: int = 0
    """Addresses that existed for one answer and that no program reads any more."""

    def __bool__(self) -> bool:
        """Whether there may be more."""
        return bool(self.turns or self.deliveries or self.addresses)


def recover(
    tx: Tx, *, ids: Ids, settings: Settings, deduplicating: frozenset[str] = frozenset()
) -> Recovered:
    """Recover a batch; a platform in ``deduplicating`` shows a message that is sent twice only once."""
    # Retire addresses first: answers then go elsewhere, and deliveries that may have been shown there are not repeated.
    addresses = retire_addresses(tx, settings=settings, limit=BATCH)
    recovered = sum(_recover_turn(tx, orphan, ids=ids) for orphan in turns.list_orphans(tx, limit=BATCH))
    settled = sum(
        settle(tx, stuck, Unknown(), deduplicates=stuck.platform in deduplicating)
        for stuck in outbox.list_stuck(tx, limit=BATCH)
    )
    return Recovered(turns=recovered, deliveries=settled, addresses=addresses)


def _recover_turn(tx: Tx, orphan: turns.Turn, *, ids: Ids) -> bool:
    """End a lost turn. Retry its items, unless a person stopped the turn or the attempts are used up."""
    session_id = SessionId(orphan.session_id)
    sessions.lock_session(tx, session_id)
    if turns.get_turn(tx, orphan.id).state != "running":
        return False  # another gateway was faster
    lease = leases.take_lease(tx, session_id, holder=HOLDER)
    if lease is None:
        return False  # its holder is back, or another process has taken the lease
    held = turns.take_over(tx, orphan.id, lease)
    turn = turns.get_turn(tx, orphan.id)
    if turn.stop_requested_at is not None:
        if any(item.busy_mode == "rollback" for item in inbox.list_ready(tx, session_id)):
            roll_back_turn(tx, held, partial=_text_so_far(tx, turn), ids=ids)
        else:
            stop_turn(tx, held, partial=_text_so_far(tx, turn))
        return True
    if may_retry(tx, turn):
        close_unknown_steps(tx, held)
        give_items_back(tx, turn, ready_at=tx.now)
    else:
        give_up(tx, held, turn, failure=GIVEN_UP, partial=_text_so_far(tx, turn), ids=ids)
    end_turn(tx, held, state="lost", reason="its holder was lost")
    return True


def _text_so_far(tx: Tx, turn: turns.Turn) -> NewMessage | None:
    text = text_so_far(tx, turn.id)
    return (
        NewMessage(role="assistant", parts=(TextPart(text=text),), finish_reason="interrupted")
        if text
        else None
    )
