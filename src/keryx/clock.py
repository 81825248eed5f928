"""The only module that reads time.

Records and rules use wall times. Leases use monotonic times, which are never compared between boots. Code that
needs a time takes a ``Clock``, so that the simulator can replace the clock.
"""

import time
from pathlib import Path
from typing import Protocol

Micros = int
"""Microseconds: since the Unix epoch for wall times, since a fixed instant of the boot for lease times."""

SECOND: Micros = 1_000_000
MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
DAY: Micros = 24 * HOUR


class Clock(Protocol):
    """A source of times."""

    def now(self) -> Micros:
        """Return the wall time in microseconds UTC."""

    def monotonic(self) -> Micros:
        """Return a time of this machine that continues during sleep and never jumps."""

    def boot_id(self) -> str:
        """Return the id of the boot from which ``monotonic`` counts."""


class SystemClock:
    """The machine's clock."""

    def __init__(self) -> None:
        self._boot_id = read_boot_id()

    def now(self) -> Micros:
        """Return the wall time in microseconds UTC."""
        return time.time_ns() // 1_000

    def monotonic(self) -> Micros:
        """Return the time since boot, including sleep if the system counts it."""
        return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000

    def boot_id(self) -> str:
        """Return the kernel's boot id, or an id derived from the boot time if the kernel has none."""
        return self._boot_id


_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def read_boot_id(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str:
    """Return the kernel's boot id, or an id made from the minute of the boot if the kernel has none."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        # The file exists only on Linux. The minute distinguishes boots and survives small corrections of the clock.
        booted_at = time.time() - time.clock_gettime(_BOOT_CLOCK)
        return f"minute-{round(booted_at / 60)}"
