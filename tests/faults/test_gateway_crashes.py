"""The whole gateway, killed, frozen or failing at every point of a message's way: nothing lost, nothing doubled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from keryx.testing.simulator.crashes import MessagesWay, Way, WayOverTime, crash_everywhere
from keryx.testing.simulator.theatre import Theatre
from keryx.testing.simulator.world import How

ROOT = Path(__file__).parents[2]
HOWS: tuple[How, ...] = ("kill", "exception", "freeze")
POINTS_MIN = 40
CHUNK = 500
HISTORIES = 2_000
POSTGRES_CHUNK = 50
POSTGRES_HISTORIES = 200


@pytest.mark.parametrize("gateways", [1, 2])
@pytest.mark.parametrize("how", HOWS)
def test_every_crash_point_in_memory(how: How, gateways: int) -> None:
    see_that_it_holds(Theatre(), MessagesWay(gateways=gateways), how)


@pytest.mark.parametrize("how", HOWS)
def test_every_crash_point_on_postgres(how: How, postgres_url: str) -> None:
    see_that_it_holds(Theatre(postgres_url), MessagesWay(gateways=2, short=True), how)


@pytest.mark.parametrize("how", HOWS)
def test_every_crash_point_of_a_summary_a_flush_and_a_reset_in_memory(how: How) -> None:
    see_that_it_holds(Theatre(), WayOverTime(gateways=2), how)


@pytest.mark.parametrize("how", HOWS)
def test_every_crash_point_of_a_summary_a_flush_and_a_reset_on_postgres(how: How, postgres_url: str) -> None:
    see_that_it_holds(Theatre(postgres_url), WayOverTime(reads=False), how)


def see_that_it_holds(theatre: Theatre, way: Way, how: How) -> None:
    points = 0
    for point, breaches in crash_everywhere(theatre, way, how):
        assert not breaches, f"{point}: {breaches}"
        points += 1
    theatre.close()
    assert points >= POINTS_MIN, "the way of a message has more points than this"


@pytest.mark.parametrize("first", range(0, HISTORIES, CHUNK))
def test_random_histories_in_memory(first: int) -> None:
    play(first, first + CHUNK - 1)


@pytest.mark.parametrize("first", range(0, POSTGRES_HISTORIES, POSTGRES_CHUNK))
def test_random_histories_on_postgres(first: int, postgres_url: str) -> None:
    play(first, first + POSTGRES_CHUNK - 1, postgres_url)


def play(first: int, last: int, *address: str) -> None:
    """Play histories in a process of their own, where nothing measures coverage and slows them down."""
    ran = subprocess.run(
        [sys.executable, "-m", "keryx.testing.simulator", str(first), str(last), *address],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
