"""An account that this gateway holds: the connector lease, and how long the process can be sure of it by itself.

Epochs protect rows, not messages: a process that slept past its lease must not send what another has sent by then.
"""

from keryx.clock import Clock, Micros
from keryx.domain.lease import must_cancel
from keryx.gateway.desk import Desk
from keryx.platforms.adapter import Adapter
from keryx.transactions.deliveries import Connector, take_connector
from keryx.values import dataclass


@dataclass(slots=True, kw_only=True)
class Hold:
    """The right to work with an account, as of ``kept_at``."""

    connector: Connector
    clock: Clock
    kept_at: Micros

    def is_sure(self) -> bool:
        """Whether nobody else can have it yet."""
        return not must_cancel(last_renewed_at=self.kept_at, now=self.clock.monotonic())

    def keep(self, renewed: "Hold") -> bool:
        """Go on for as long as a renewed hold says; False if that is another one."""
        if renewed.connector != self.connector:
            return False
        self.kept_at = renewed.kept_at
        return True


async def take_hold(desk: Desk, adapter: Adapter) -> Hold | None:
    """Take an account, or keep it; None while another gateway has it."""
    # Before it is asked for: the answer may take its time.
    asked_at = desk.clock.monotonic()
    connector = await desk.write(
        lambda tx: take_connector(
            tx, platform=adapter.platform, account=adapter.account or "", holder=desk.holder
        )
    )
    return None if connector is None else Hold(connector=connector, clock=desk.clock, kept_at=asked_at)
