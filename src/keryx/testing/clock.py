"""A clock for tests that only the test moves."""

from keryx.clock import Micros


class FakeClock:
    """Wall and lease time under a test's control; after ``reboot``, all leases of the old boot have expired."""

    def __init__(self, now: Micros = 1_790_000_000_000_000) -> None:
        self._now = now
        self._monotonic: Micros = 1_000_000
        self._boot = 1

    def now(self) -> Micros:
        """Return the wall time."""
        return self._now

    def monotonic(self) -> Micros:
        """Return the lease time."""
        return self._monotonic

    def boot_id(self) -> str:
        """Return the id of the current boot."""
        return f"boot-{self._boot}"

    def advance(self, micros: Micros) -> None:
        """Advance the wall time and the lease time."""
        self._now += micros
        self._monotonic += micros

    def set_wall(self, now: Micros) -> None:
        """Set the wall time, as a correction of the clock does."""
        self._now = now

    def reboot(self) -> None:
        """Begin a new boot: the monotonic clock restarts at 0."""
        self._boot += 1
        self._monotonic = 0
