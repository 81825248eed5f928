"""Rate limits that a platform has announced, per address.

They are kept with the account, because a reconnect does not lift them.
"""

from keryx.clock import Micros
from keryx.core.deliveries.rules.delivery import Outcome, Rejected


class RateLimits:
    """The end of each rate limit, in lease time."""

    def __init__(self) -> None:
        self._until: dict[str, Micros] = {}

    def note(self, address: str, outcome: Outcome, *, now: Micros) -> None:
        """Remember the ``retry_after`` of a rejected delivery."""
        if isinstance(outcome, Rejected) and outcome.retry_after is not None:
            self._until = {each: until for each, until in self._until.items() if until > now}
            self._until[address] = now + outcome.retry_after

    def left(self, address: str, *, now: Micros) -> Micros:
        """Return how long the address is still limited."""
        return max(0, self._until.get(address, 0) - now)
