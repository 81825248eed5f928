"""Renew a turn's lease and learn what happened meanwhile: a stop, or messages that steer."""

from itertools import takewhile

from keryx.core.conversations.rules.message import NewMessage
from keryx.core.conversations.transactions.session_guard import require_turn_lease
from keryx.core.turns.rules.lease import Lease, TurnLease
from keryx.core.turns.tables import inbox, leases
from keryx.core.turns.transactions.begin_turn import message_of
from keryx.store.database import Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """A message that joins a running turn."""

    id: int
    message: NewMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """The turn may go on, until the lease's new time."""

    lease: Lease
    stop_requested: bool
    roll_back: bool
    """The stop is wanted for a new start with what was asked, not for an end."""
    steering: tuple[Steering, ...]
    """Messages to join the turn at its next step; each counts as seen only when a step that had it commits."""


def renew_turn(tx: Tx, held: TurnLease) -> Renewed:
    """Prolong the lease, or raise ``LeaseLost``."""
    turn = require_turn_lease(tx, held)
    renewed = leases.renew_lease(tx, held.lease)
    said = [item for item in inbox.list_ready(tx, held.session_id) if item.kind == "message"]
    stop_requested = turn.stop_requested_at is not None
    # The turn has its person's tools, and nobody else's words may use them: what others say waits for a turn of theirs,
    # and so does what is said behind it. A message that steers brings along what was said before it. Both because
    # answers keep the order of the questions.
    own = tuple(takewhile(lambda item: item.person_id == turn.person_id, said))
    last = max((index for index, item in enumerate(own, 1) if item.busy_mode == "steer"), default=0)
    return Renewed(
        lease=renewed,
        stop_requested=stop_requested,
        roll_back=stop_requested and any(item.busy_mode == "rollback" for item in said),
        steering=tuple(Steering(id=item.id, message=message_of(tx, item)) for item in own[:last]),
    )
