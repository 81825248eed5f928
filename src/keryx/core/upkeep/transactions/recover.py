"""Take up what a crash left: turns without a holder, deliveries without a sender, places without anybody.

Runs at start and now and then; several gateways may run it at once. A call takes up a bounded batch: the caller goes
on until nothing is found.
"""

from keryx.config import Settings
from keryx.core.conversations.rules.message import NewMessage, TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import feed, sessions
from keryx.core.deliveries.rules.delivery import Unknown
from keryx.core.deliveries.tables import outbox
from keryx.core.deliveries.transactions.claim_deliveries import settle
from keryx.core.deliveries.transactions.retire_address import retire_addresses
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.tables import inbox, leases, turns
from keryx.core.turns.transactions.close_steps import close_unknown_steps
from keryx.core.turns.transactions.fail_turn import (
    Failure,
    give_items_back,
    give_up,
    may_be_tried_again,
    roll_back_turn,
    stop_turn,
)
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

BATCH = 20
HOLDER = "recover"
GIVEN_UP = Failure(reason="Keryx stopped several times while answering; send it again if it still matters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What was taken up."""

    turns: int
    deliveries: int
    places: int = 0
    """Those that were there for one answer, and are left now."""

    def __bool__(self) -> bool:
        """Whether there may be more."""
        return bool(self.turns or self.deliveries or self.places)


def recover(
    tx: Tx, *, ids: Ids, settings: Settings, deduplicating: frozenset[str] = frozenset()
) -> Recovered:
    """Take up a batch of what a crash left; ``deduplicating`` platforms show a message sent twice only once."""
    # First: what the dead one asked is answered elsewhere, and what it may have shown is shown nowhere again.
    places = retire_addresses(tx, settings=settings, limit=BATCH)
    taken_up = sum(_take_up(tx, orphan, ids=ids) for orphan in turns.list_orphans(tx, limit=BATCH))
    settled = sum(
        settle(tx, stuck, Unknown(), deduplicates=stuck.platform in deduplicating)
        for stuck in outbox.list_stuck(tx, limit=BATCH)
    )
    return Recovered(turns=taken_up, deliveries=settled, places=places)


def _take_up(tx: Tx, orphan: turns.Turn, *, ids: Ids) -> bool:
    """End a lost turn: what it answered is tried again, unless a person stopped it or it was tried too often."""
    session_id = SessionId(orphan.session_id)
    sessions.lock_session(tx, session_id)
    if turns.get_turn(tx, orphan.id).state != "running":
        return False  # another gateway was faster
    lease = leases.take_lease(tx, session_id, holder=HOLDER)
    if lease is None:
        return False  # its holder came back, or somebody is about to take it up
    turns.take_over(tx, orphan.id, lease)
    held = TurnLease(lease=lease, turn_id=orphan.id)
    turn = turns.get_turn(tx, orphan.id)
    if turn.stop_requested_at is not None:
        _stop(tx, held, turn, ids=ids)
        return True
    if may_be_tried_again(tx, turn):
        close_unknown_steps(tx, held)
        give_items_back(tx, turn, ready_at=tx.now)
    else:
        give_up(tx, held, turn, failure=GIVEN_UP, partial=_said_so_far(tx, turn), ids=ids)
    turns.end_turn(tx, turn.id, state="lost", reason="its holder was lost")
    leases.release_lease(tx, lease)
    feed.add_event(tx, session_id, "turn", turn.id)
    return True


def _stop(tx: Tx, held: TurnLease, turn: turns.Turn, *, ids: Ids) -> None:
    """Do what the lost holder had been asked to do."""
    partial = _said_so_far(tx, turn)
    if any(item.busy_mode == "rollback" for item in inbox.list_ready(tx, turn.session_id)):
        roll_back_turn(tx, held, partial=partial, ids=ids)
    else:
        stop_turn(tx, held, partial=partial)


def _said_so_far(tx: Tx, turn: turns.Turn) -> NewMessage | None:
    said = "".join(text for _start, text in turns.list_chunks(tx, turn.id))
    if not said:
        return None
    return NewMessage(role="assistant", parts=(TextPart(text=said),), finish_reason="interrupted")
