"""Renew a turn's lease, and return stop requests and steering messages that arrived meanwhile."""

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
    """The renewed lease, and what arrived for the turn."""

    lease: Lease
    stop_requested: bool
    roll_back: bool
    """Whether to roll the turn back instead of stopping it."""
    steering: tuple[Steering, ...]
    """Messages for the turn's next step. The step that has read them claims them."""


def renew_turn(tx: Tx, held: TurnLease) -> Renewed:
    """Extend the lease, or raise ``LeaseLost``."""
    turn = require_turn_lease(tx, held)
    renewed = leases.renew_lease(tx, held.lease)
    messages = [item for item in inbox.list_ready(tx, held.session_id) if item.kind == "message"]
    stop_requested = turn.stop_requested_at is not None
    # The turn has its person's tools, so it takes only this person's messages, up to the first message of another
    # person. A steering message takes the messages before it along. So answers keep the order of the questions.
    own = tuple(takewhile(lambda item: item.person_id == turn.person_id, messages))
    last = max((index for index, item in enumerate(own, 1) if item.busy_mode == "steer"), default=0)
    return Renewed(
        lease=renewed,
        stop_requested=stop_requested,
        roll_back=stop_requested and any(item.busy_mode == "rollback" for item in messages),
        steering=tuple(Steering(id=item.id, message=message_of(tx, item)) for item in own[:last]),
    )
