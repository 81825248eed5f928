"""Virtual time as the store and the gateways of a simulated world see it."""

from keryx.clock import HOUR, SECOND, Micros
from keryx.testing.simulator.loop import VirtualLoop

EPOCH: Micros = 1_790_000_000 * SECOND


class SimulatedClock:
    """A clock that never goes back; a test may move its wall time."""

    def __init__(self) -> None:
        self._start = EPOCH
        self._loop: VirtualLoop | None = None
        self.offset: Micros = 0

    def restart(self) -> None:
        """Begin again at the epoch."""
        self._start, self._loop, self.offset = EPOCH, None, 0

    def follow(self, loop: VirtualLoop) -> None:
        """Continue with the time of another loop, an hour later."""
        self._start += self._passed + HOUR
        self._loop = loop

    def now(self) -> Micros:
        """Return the wall time."""
        return self._start + self.offset + self._passed

    def monotonic(self) -> Micros:
        """Return the lease time."""
        return self._start - EPOCH + self._passed

    def boot_id(self) -> str:
        """Return a constant: there is one machine, and it never restarts."""
        return "simulated"

    @property
    def _passed(self) -> Micros:
        return 0 if self._loop is None else int(self._loop.time() * SECOND)
