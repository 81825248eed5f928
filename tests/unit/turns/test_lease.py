"""Leases: when a holder must renew, and when it must cancel."""

import pytest

from keryx.clock import SECOND
from keryx.core.conversations.rules.session import parse_session_id
from keryx.core.turns.rules.lease import CANCEL_AFTER, LEASE_TIME, RENEW_EVERY, Lease, must_cancel
from keryx.errors import InvalidValue

SESSION = parse_session_id("20260501_120000_0123abcd")


def test_a_holder_renews_and_cancels_before_its_lease_expires() -> None:
    assert (RENEW_EVERY, CANCEL_AFTER, LEASE_TIME) == (10 * SECOND, 20 * SECOND, 30 * SECOND)


def test_a_holder_that_cannot_renew_cancels_after_twenty_seconds() -> None:
    assert not must_cancel(last_renewed_at=0, now=20 * SECOND - 1)
    assert must_cancel(last_renewed_at=0, now=20 * SECOND)


@pytest.mark.parametrize(("holder", "epoch"), [("", 1), ("h", 0)])
def test_a_lease_without_holder_or_epoch_is_refused(holder: str, epoch: int) -> None:
    assert Lease(session_id=SESSION, holder="h", epoch=1, expires_at=1).epoch == 1
    with pytest.raises(InvalidValue, match="lease"):
        Lease(session_id=SESSION, holder=holder, epoch=epoch, expires_at=1)
