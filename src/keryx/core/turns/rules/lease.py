"""One writer per session.

A lease carries an epoch that rises with each holder; every write of a turn checks the epoch in the database. Times
here are lease times (``tx.lease_now``), never wall times. They are valid only within one boot of the machine.
"""

from keryx.clock import SECOND, Micros
from keryx.core.conversations.rules.session import SessionId
from keryx.core.values.turn_states import TurnId
from keryx.errors import InvalidValue
from keryx.values import dataclass

LEASE_TIME: Micros = 30 * SECOND
RENEW_EVERY: Micros = 10 * SECOND
CANCEL_AFTER: Micros = 20 * SECOND
"""Earlier than the lease's end, because epochs protect rows, not e-mails that the agent might still send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to write to a session, until ``expires_at`` unless renewed."""

    session_id: SessionId
    holder: str
    epoch: int
    expires_at: Micros

    def __post_init__(self) -> None:
        if not self.holder:
            raise InvalidValue("lease without a holder: give the holder's token")
        if self.epoch < 1:
            raise InvalidValue(f"lease epoch {self.epoch}: epochs start at 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLease:
    """The right to write one turn: the lease of its session, taken for this turn."""

    lease: Lease
    turn_id: TurnId

    @property
    def session_id(self) -> SessionId:
        """The session that the turn is in."""
        return self.lease.session_id


def must_cancel(*, last_renewed_at: Micros, now: Micros) -> bool:
    """Return whether the holder must cancel its agent, because it could not renew the lease for too long."""
    return now - last_renewed_at >= CANCEL_AFTER
