"""The only reader of time.

Wall time is for records and rules; lease time is monotonic and never compared between boots. Everything that
needs either is given a ``Clock``, so that a simulator can be the clock.
"""

import time
from pathlib import Path
from typing import Protocol

Micros = int
"""Microseconds: since the Unix epoch for wall times, since some fixed instant for lease times."""

SECOND: Micros = 1_000_000
MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
DAY: Micros = 24 * HOUR


class Clock(Protocol):
    """Where times come from."""

    def now(self) -> Micros:
        """Wall time in microseconds UTC."""

    def monotonic(self) -> Micros:
        """A clock of this machine that goes on during sleep and never jumps."""

    def boot_id(self) -> str:
        """Which boot of the machine ``monotonic`` counts from."""


class SystemClock:
    """The machine's clock."""

    def __init__(self) -> None:
        self._boot_id = read_boot_id()

    def now(self) -> Micros:
        """Wall time in microseconds UTC."""
        return time.time_ns() // 1_000

    def monotonic(self) -> Micros:
        """Time since boot, sleep included where the system can tell."""
        return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000

    def boot_id(self) -> str:
        """The kernel's boot id, or one derived from the boot time where there is none."""
        return self._boot_id


_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def read_boot_id(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str:
    """Return the kernel's id of this boot, or the minute it began in where there is none."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        # No such file outside Linux. The minute tells boots apart and survives small corrections of the clock.
        booted_at = time.time() - time.clock_gettime(_BOOT_CLOCK)
        return f"minute-{round(booted_at / 60)}"
