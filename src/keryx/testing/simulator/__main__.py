"""Play random histories: ``python -m keryx.testing.simulator FIRST LAST [postgresql://…]``.

Prints every breach with its seed, and fails if there was one.
"""

import sys

from keryx.testing.simulator.history import run_histories


def main(arguments: list[str]) -> int:
    """Play the histories of these seeds and tell what broke."""
    first, last, *address = arguments
    broken = 0
    for seed, breaches in run_histories(
        range(int(first), int(last) + 1), address=address[0] if address else None
    ):
        for breach in breaches:
            sys.stdout.write(f"seed {seed}: {breach}\n")
        broken += bool(breaches)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
