"""Leases: when one may be taken, must be renewed, and when a holder gives up."""

import pytest

from keryx.clock import SECOND
from keryx.domain.lease import (
    CANCEL_AFTER,
    LEASE_TIME,
    RENEW_EVERY,
    Lease,
    must_cancel,
    renew_due,
)
from keryx.domain.session import parse_session_id
from keryx.errors import InvalidValue

SESSION = parse_session_id("20260501_120000_0123abcd")


def test_a_holder_renews_and_gives_up_before_its_lease_runs_out() -> None:
    assert (RENEW_EVERY, CANCEL_AFTER, LEASE_TIME) == (10 * SECOND, 20 * SECOND, 30 * SECOND)


def test_a_holder_renews_every_ten_seconds_and_cancels_after_twenty() -> None:
    assert not renew_due(last_renewed_at=0, now=10 * SECOND - 1)
    assert renew_due(last_renewed_at=0, now=10 * SECOND)
    assert not must_cancel(last_renewed_at=0, now=20 * SECOND - 1)
    assert must_cancel(last_renewed_at=0, now=20 * SECOND)


@pytest.mark.parametrize(("holder", "epoch"), [("", 1), ("h", 0)])
def test_a_lease_without_holder_or_epoch_is_refused(holder: str, epoch: int) -> None:
    assert Lease(session_id=SESSION, holder="h", epoch=1, expires_at=1).epoch == 1
    with pytest.raises(InvalidValue, match="lease"):
        Lease(session_id=SESSION, holder=holder, epoch=epoch, expires_at=1)
