"""Play random histories, or crash at every point of a way, and print every breach; the exit code is 1 on a breach.

``python -m keryx.testing.simulator histories FIRST LAST [postgresql://…]``
``python -m keryx.testing.simulator crashes WAY HOW [postgresql://…]``
"""

import sys
from collections.abc import Iterable

from keryx.testing.simulator.crashes import WAYS, crash_everywhere
from keryx.testing.simulator.fault_plan import HOWS
from keryx.testing.simulator.history import run_histories
from keryx.testing.simulator.theatre import Theatre

POINTS_MIN = 40
"""Every way has more points than this; a way with fewer does not cover what it should."""


def main(what: str, first: str, second: str, *address: str) -> int:
    """Play the requested histories or crashes, and return the exit code."""
    played: Iterable[tuple[object, list[str]]]
    if what == "histories":
        wanted = int(second) - int(first) + 1
        played = run_histories(range(int(first), int(second) + 1), address=next(iter(address), None))
    else:
        theatre = Theatre(*address)
        wanted = POINTS_MIN
        [how] = [each for each in HOWS if each == second]
        played = crash_everywhere(theatre, WAYS[first], how)
    broken = count = 0
    for name, breaches in played:
        count += 1
        broken += bool(breaches)
        for breach in breaches:
            sys.stdout.write(f"{what} {name}: {breach}\n")
    sys.stdout.write(f"{count} {what}, {broken} broken\n")
    return 1 if broken or count < wanted else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
