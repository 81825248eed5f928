"""The chat window shows each view of the store correctly after any live text."""

import asyncio
from io import StringIO
from typing import cast

from rich.console import Console

from keryx.cli.chat.terminal_io import LineInput
from keryx.cli.chat.window import ChatWindow
from keryx.cli.chat.worker import TerminalWorker
from keryx.core.conversations.rules.message import text_message
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.fail_turn import stop_turn
from keryx.core.turns.views.terminal import TerminalView
from keryx.live import Delta
from keryx.platforms.terminal.screen import Screen
from keryx.store.database import Database
from keryx.testing.clock import FakeClock
from tests.cli.runner import make_runtime
from tests.conformance import acting as act
from tests.conformance.acting import call
from tests.conformance.stage import Stage
from tests.conformance.turns.test_terminal import send_all


class IdleWorker:
    """A worker of a terminal beside a gateway: it has nothing to do."""

    records = False

    async def act_on(self, view: TerminalView) -> None:
        """Do nothing."""


def spoken(begun: BegunTurn, text: str) -> Delta:
    return Delta(
        session_id=begun.lease.session_id, turn_id=begun.turn_id, after=1, kind="text", offset=0, text=text
    )


async def test_a_message_from_elsewhere_is_shown_before_its_answer(
    database: Database, clock: FakeClock
) -> None:
    stage = Stage(database=database, clock=clock)
    await stage.exchange("hello", source=LOCAL_CLI)
    await send_all(stage)
    shown = StringIO()
    window = ChatWindow(make_runtime(database), Screen(Console(file=shown, force_terminal=True)))
    await window.begin()
    window.leave(hurried=True)
    await watch(window)
    # The whole turn takes place between two views, like a quick turn of a gateway.
    await stage.accept("which sessions are there?", source=LOCAL_CLI)
    begun = await stage.begin()
    await call(stage, begun, ("a", "pure"), text="I will look.")
    await act.result(stage, begun, "a")
    await stage.finish(begun, "There are two.")
    await watch(window)
    told = shown.getvalue()
    places = [told.find(each) for each in ("another terminal: ", "I will look.", "tool (", "There are two.")]
    assert -1 not in places
    assert places == sorted(places)
    window.close()


async def watch(window: ChatWindow) -> None:
    """Run the window until everything is shown."""
    async with asyncio.timeout(30):
        await window.watch(cast("TerminalWorker", IdleWorker()), LineInput(StringIO()))


async def test_a_stopped_answer_is_marked_after_the_next_answer_has_begun(
    database: Database, clock: FakeClock
) -> None:
    stage = Stage(database=database, clock=clock)
    shown = StringIO()
    window = ChatWindow(make_runtime(database), Screen(Console(file=shown)))
    await window.begin()
    await stage.hear("tell me a story", source=LOCAL_CLI)
    story = await stage.begin()
    window.display.turn.add(spoken(story, "Once there was a herald."))
    await stage.hear("one more thing", source=LOCAL_CLI)
    partial = text_message("assistant", "Once there was a herald. He spoke")
    await stage.do(lambda tx: stop_turn(tx, story.held, partial=partial))
    following = await stage.begin()
    window.display.turn.add(spoken(following, "Yes, "))
    window.leave(hurried=True)
    await watch(window)
    told = " ".join(shown.getvalue().split())
    assert "Once there was a herald." in told
    assert "He spoke" in told
    assert told.count("(stopped)") == 1
    window.close()
