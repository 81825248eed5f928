"""One writer per session.

A lease carries an epoch that rises with each holder; every write of a turn checks it in the database. Times here are
lease times (``tx.lease_now``), never wall times, and mean nothing on another boot of the machine.
"""

from keryx.clock import SECOND, Micros
from keryx.domain.session import SessionId
from keryx.errors import InvalidValue
from keryx.values import dataclass

LEASE_TIME: Micros = 30 * SECOND
RENEW_EVERY: Micros = 10 * SECOND
CANCEL_AFTER: Micros = 20 * SECOND
"""Before the lease runs out, because epochs protect rows, not e-mails the agent might still send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to write into a session, until ``expires_at`` unless renewed."""

    session_id: SessionId
    holder: str
    epoch: int
    expires_at: Micros

    def __post_init__(self) -> None:
        if not self.holder:
            raise InvalidValue("lease without a holder: give the token of whoever takes it")
        if self.epoch < 1:
            raise InvalidValue(f"lease epoch {self.epoch}: it counts from 1")


def renew_due(*, last_renewed_at: Micros, now: Micros) -> bool:
    """Say whether the holder should renew."""
    return now - last_renewed_at >= RENEW_EVERY


def must_cancel(*, last_renewed_at: Micros, now: Micros) -> bool:
    """Say whether the holder must cancel its agent by itself, having failed to renew for too long."""
    return now - last_renewed_at >= CANCEL_AFTER
