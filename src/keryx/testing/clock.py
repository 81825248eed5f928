"""A clock that stands still until it is moved."""

from keryx.clock import Micros


class FakeClock:
    """Wall and lease time under a test's control; a new boot makes every lease of the old one void."""

    def __init__(self, now: Micros = 1_790_000_000_000_000) -> None:
        self._now = now
        self._monotonic: Micros = 1_000_000
        self._boot = 1

    def now(self) -> Micros:
        """Wall time."""
        return self._now

    def monotonic(self) -> Micros:
        """Lease time."""
        return self._monotonic

    def boot_id(self) -> str:
        """Which boot this is."""
        return f"boot-{self._boot}"

    def advance(self, micros: Micros) -> None:
        """Let time pass on both clocks."""
        self._now += micros
        self._monotonic += micros

    def set_wall(self, now: Micros) -> None:
        """Let the wall clock jump, as clocks that are corrected do."""
        self._now = now

    def reboot(self) -> None:
        """Start the monotonic clock over."""
        self._boot += 1
        self._monotonic = 0
