"""What a terminal makes of a look at the store, whatever it has heard before."""

import asyncio
from io import StringIO
from typing import cast

from rich.console import Console

from keryx.cli.chat import Room
from keryx.cli.chat_input import Lines
from keryx.cli.chat_presence import Presence
from keryx.cli.chat_screen import Screen
from keryx.domain.message import text_message
from keryx.domain.source import LOCAL_CLI
from keryx.live import Delta
from keryx.store.database import Database
from keryx.testing.clock import FakeClock
from keryx.transactions.begin_turn import BegunTurn
from keryx.transactions.fail_turn import stop_turn
from keryx.views.said import Look
from tests.cli.runner import make_desk
from tests.conformance import acting as act
from tests.conformance.acting import call
from tests.conformance.stage import Stage
from tests.conformance.test_said import send_all


class Bystander:
    """Somebody at a place where others do the work."""

    records = False

    async def act_on(self, seen: Look) -> None:
        """Do nothing."""


def spoken(begun: BegunTurn, text: str) -> Delta:
    return Delta(
        session_id=begun.lease.session_id, turn_id=begun.turn_id, after=1, kind="text", offset=0, text=text
    )


async def test_what_was_said_elsewhere_stands_before_what_came_of_it(
    database: Database, clock: FakeClock
) -> None:
    stage = Stage(database=database, clock=clock)
    await stage.exchange("hello", source=LOCAL_CLI)
    await send_all(stage)
    shown = StringIO()
    room = Room(make_desk(database), Screen(Console(file=shown, force_terminal=True)))
    await room.begin()
    room.leave(hurried=True)
    await watch(room)
    # All of it between two looks, as a quick turn of a gateway is.
    await stage.accept("which sessions are there?", source=LOCAL_CLI)
    begun = await stage.begin()
    await call(stage, begun, ("a", "pure"), text="I will look.")
    await act.result(stage, begun, "a")
    await stage.finish(begun, "There are two.")
    await watch(room)
    told = shown.getvalue()
    places = [told.find(each) for each in ("another terminal: ", "I will look.", "tool (", "There are two.")]
    assert -1 not in places
    assert places == sorted(places)
    room.close()


async def watch(room: Room) -> None:
    """Let a room look until everything is shown."""
    async with asyncio.timeout(30):
        await room.watch(cast("Presence", Bystander()), Lines(StringIO()))


async def test_a_stopped_answer_is_called_so_though_the_next_one_speaks_already(
    database: Database, clock: FakeClock
) -> None:
    stage = Stage(database=database, clock=clock)
    shown = StringIO()
    room = Room(make_desk(database), Screen(Console(file=shown)))
    await room.begin()
    await stage.hear("tell me a story", source=LOCAL_CLI)
    story = await stage.begin()
    room.turn.hear(spoken(story, "Once there was a herald."))
    await stage.hear("one more thing", source=LOCAL_CLI)
    partial = text_message("assistant", "Once there was a herald. He spoke")
    await stage.do(lambda tx: stop_turn(tx, story.lease, turn_id=story.turn_id, partial=partial))
    following = await stage.begin()
    room.turn.hear(spoken(following, "Yes, "))
    room.leave(hurried=True)
    await watch(room)
    told = " ".join(shown.getvalue().split())
    assert "Once there was a herald." in told
    assert "He spoke" in told
    assert told.count("(stopped)") == 1
    room.close()
