"""Play random histories, or crash at every point of a story, and print every breach; the exit code is 1 on a breach.

``python -m keryx.testing.simulator histories FIRST LAST [postgresql://…]``
``python -m keryx.testing.simulator crashes STORY FAULT [postgresql://…]``
"""

import sys
from collections.abc import Iterable

from keryx.testing.simulator.crashes import CRASH_STORIES, crash_everywhere
from keryx.testing.simulator.fault_plan import FAULT_KINDS
from keryx.testing.simulator.history import run_histories
from keryx.testing.simulator.simulation import Simulation

POINTS_MIN = 40
"""A story with fewer crash points does not cover its subject."""


def main(what: str, first: str, second: str, *address: str) -> int:
    """Play the requested histories or crashes, and return the exit code."""
    played: Iterable[tuple[object, list[str]]]
    if what == "histories":
        wanted = int(second) - int(first) + 1
        played = run_histories(range(int(first), int(second) + 1), address=next(iter(address), None))
    else:
        simulation = Simulation(*address)
        wanted = POINTS_MIN
        [kind] = [each for each in FAULT_KINDS if each == second]
        played = crash_everywhere(simulation, CRASH_STORIES[first], kind)
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
