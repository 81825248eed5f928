"""Waiting for the disk to be itself again before something is timed.

A virtual machine's disk is often rated: after a burst, every sync takes milliseconds until the allowance is refilled.
Whoever happens to come next would pay for the burst of another. The best state ever seen is kept in a file.
"""

import os
import statistics
import time
from pathlib import Path

PROBE = b"\0" * 16_384
PROBES = 8
NEAR = 2.0
"""The disk is calm when a synced write takes at most this many times what it took at best."""
WAIT_SECONDS_MAX = 2.0


def wait_for_calm(folder: Path) -> float:
    """Write back what others left in the page cache, wait a little for a calm disk, and return its sync time."""
    os.sync()
    record = folder / "disk-best.txt"
    best = float(record.read_text(encoding="ascii")) if record.exists() else float("inf")
    until = time.perf_counter() + WAIT_SECONDS_MAX
    with (folder / f"disk-probe-{os.getpid()}").open("wb", buffering=0) as file:
        Path(file.name).unlink()
        while True:
            took = statistics.median(_probe(file.fileno()) for _ in range(PROBES))
            if took < best:
                record.write_text(repr(took), encoding="ascii")
            if took <= NEAR * best or time.perf_counter() > until:
                return took
            time.sleep(0.1)


def _probe(descriptor: int) -> float:
    began = time.perf_counter()
    os.pwrite(descriptor, PROBE, 0)
    os.fdatasync(descriptor)
    return time.perf_counter() - began
