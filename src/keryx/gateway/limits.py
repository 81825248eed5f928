"""Until when a platform wants nothing more at an address, by its own word.

It is kept with the account, because a connection that is made again is no reason to ask sooner.
"""

from keryx.clock import Micros
from keryx.domain.outbox import Outcome, Rejected


class Limits:
    """What a platform asked this process for, in lease time."""

    def __init__(self) -> None:
        self._until: dict[str, Micros] = {}

    def note(self, address: str, outcome: Outcome, *, now: Micros) -> None:
        """Take the platform by its word."""
        if isinstance(outcome, Rejected) and outcome.retry_after is not None:
            self._until = {each: until for each, until in self._until.items() if until > now}
            self._until[address] = now + outcome.retry_after

    def left(self, address: str, *, now: Micros) -> Micros:
        """Return how long to wait yet."""
        return max(0, self._until.get(address, 0) - now)
