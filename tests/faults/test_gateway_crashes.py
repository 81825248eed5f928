"""A gateway killed, frozen or failing at every point of a message's way loses and doubles nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from keryx.testing.simulator.fault_plan import FAULT_KINDS

ROOT = Path(__file__).parents[2]
CHUNK = 500
HISTORIES = 2_000
POSTGRES_CHUNK = 50
POSTGRES_HISTORIES = 200


@pytest.mark.parametrize("story", ["message", "message between two", "over time between two"])
@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_every_crash_point_in_memory(story: str, kind: str) -> None:
    play("crashes", story, kind)


# A frozen gateway needs another one that takes over; a killed or failed gateway is restarted.
@pytest.mark.parametrize(
    ("story", "kind"),
    [
        ("short message", "kill"),
        ("short message", "exception"),
        ("short message between two", "freeze"),
        *(("over time", kind) for kind in FAULT_KINDS),
    ],
)
def test_every_crash_point_on_postgres(story: str, kind: str, postgres_url: str) -> None:
    play("crashes", story, kind, postgres_url)


@pytest.mark.parametrize("first", range(0, HISTORIES, CHUNK))
def test_random_histories_in_memory(first: int) -> None:
    play("histories", str(first), str(first + CHUNK - 1))


@pytest.mark.parametrize("first", range(0, POSTGRES_HISTORIES, POSTGRES_CHUNK))
def test_random_histories_on_postgres(first: int, postgres_url: str) -> None:
    play("histories", str(first), str(first + POSTGRES_CHUNK - 1), postgres_url)


def play(*arguments: str) -> None:
    """Run the simulator in its own process, without the slow coverage measurement."""
    ran = subprocess.run(
        [sys.executable, "-m", "keryx.testing.simulator", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
