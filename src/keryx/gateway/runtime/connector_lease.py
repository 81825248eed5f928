"""The connector lease of an account, and how long this process may rely on it without asking the store.

Epochs protect rows, not messages. A process that slept past its lease must not send a message that another gateway has
sent meanwhile.
"""

from keryx.clock import Clock, Micros
from keryx.core.accounts.transactions import Connector, take_connector
from keryx.core.turns.rules.lease import must_cancel
from keryx.gateway.runtime.runtime import Runtime
from keryx.platforms.adapter import Adapter
from keryx.values import dataclass


@dataclass(slots=True, kw_only=True)
class HeldConnector:
    """A connector lease that was last renewed at ``renewed_at``."""

    connector: Connector
    clock: Clock
    renewed_at: Micros

    def is_valid(self) -> bool:
        """Return whether no other gateway can hold the lease yet."""
        return not must_cancel(last_renewed_at=self.renewed_at, now=self.clock.monotonic())

    def extend(self, renewed: "HeldConnector") -> bool:
        """Take over the time of a renewed lease. Return False if the connector is a different one."""
        if renewed.connector != self.connector:
            return False
        self.renewed_at = renewed.renewed_at
        return True


async def take_connector_lease(runtime: Runtime, adapter: Adapter) -> HeldConnector | None:
    """Take or renew the lease of an account. Return None while another gateway holds it."""
    # Read before the request, because the answer may take a while.
    asked_at = runtime.clock.monotonic()
    connector = await runtime.database.write(
        lambda tx: take_connector(
            tx, platform=adapter.platform, account=adapter.account or "", holder=runtime.holder
        )
    )
    if connector is None:
        return None
    return HeldConnector(connector=connector, clock=runtime.clock, renewed_at=asked_at)
