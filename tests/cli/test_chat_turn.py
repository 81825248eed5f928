"""The work of a turn is drawn while it runs, and written to the screen once at its end."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from io import StringIO

import pytest
from rich.console import Console

from keryx.agents.agent import Answer, Brief, Stage
from keryx.clock import SECOND
from keryx.core.conversations.rules.message import NewMessage, TextPart, ToolCallPart
from keryx.core.turns.views.terminal import TerminalView, ViewCursor
from keryx.core.turns.views.terminal_rows import ShownCall
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import ToolFailed
from keryx.gateway.gateway import Gateway
from keryx.live import Delta
from keryx.platforms.terminal.screen import Screen
from keryx.platforms.terminal.turn_display import TurnDisplay, call_ending, call_line
from keryx.store.database import Database
from keryx.testing.builders import call_message
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import Toolbox, ToolCall
from tests.cli.runner import make_runtime
from tests.cli.terminal import CTRL_C
from tests.cli.test_chat_here import RunningChat, running_chat, store
from tests.flow.running import Actor, said

__all__ = ["store"]


class Wait(BaseTool):
    """A tool that waits for a signal, and fails on request."""

    name = "wait"
    description = "Wait for something."
    effect: StepEffect = "once"
    parameters = {"command": Parameter(help="What to wait for", required=True)}  # noqa: RUF012 - never changed

    def __init__(self) -> None:
        self.may_end = asyncio.Event()

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:  # noqa: ARG002
        if given.text("command") == "fail":
            raise ToolFailed("It failed.")
        await self.may_end.wait()
        return "done"


def calls(text: str, *commands: str) -> NewMessage:
    """Return a message with text and a call of the tool for each command."""
    made = (
        ToolCallPart(call_id=f"c{number}", name="wait", arguments={"command": command})
        for number, command in enumerate(commands)
    )
    return NewMessage(role="assistant", parts=(TextPart(text=text), *made))


@dataclass
class Worker:
    """An agent that says something, calls the tool, and thinks until a signal."""

    commands: tuple[str, ...]
    tool: Wait = field(default_factory=Wait)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, brief: Brief, stage: Stage) -> Answer:  # noqa: ARG002
        await stage.say("I will look.")
        await stage.act(calls("I will look.", *self.commands))
        await stage.think("hm")
        await self.may_answer.wait()
        await stage.say("There ")
        return said("There it is.")

    async def close(self) -> None:
        pass


@asynccontextmanager
async def watching(
    database: Database, worker: Worker, monkeypatch: pytest.MonkeyPatch, *, beside_gateway: bool = False
) -> AsyncIterator[RunningChat]:
    """Open a chat that runs the worker's turns, or one beside a gateway that does."""
    async with AsyncExitStack() as stack:
        if beside_gateway:
            gateway = Gateway(make_runtime(database), worker, Toolbox([worker.tool]), [])
            await gateway.start()
            stack.push_async_callback(gateway.stop, seconds=1)
        tools = [worker.tool]
        yield await stack.enter_async_context(
            running_chat(make_runtime(database), worker, monkeypatch, tools=tools)
        )


@pytest.mark.parametrize("beside_gateway", [False, True])
async def test_a_running_call_is_drawn_and_then_shown_with_its_duration(
    store: Database, monkeypatch: pytest.MonkeyPatch, *, beside_gateway: bool
) -> None:
    worker = Worker(("git log\n\x1b[2J",))
    async with watching(store, worker, monkeypatch, beside_gateway=beside_gateway) as at:
        at.person.enter("look")
        await at.person.sees("wait: git log\\n\\x1b[2J …")
        await at.person.sees("Working …")
        assert "I will look." in at.person.text
        worker.tool.may_end.set()
        await at.person.sees("wait: git log\\n\\x1b[2J (")
        await at.person.sees("Thinking …")
        worker.may_answer.set()
        await at.person.sees("There it is.")
        await at.leave()
        assert at.person.text.count("I will look.") == 1
        assert at.person.text.count("wait: ") == 1
        assert re.search(r"wait: .* \(\d+\.\d s\)", at.person.text)


async def test_each_call_of_a_message_has_a_line_and_a_failure_is_shown(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(("long " * 50, "fail"))
    async with watching(store, worker, monkeypatch) as at:
        at.person.enter("look")
        await at.person.sees("wait: fail (failed, ")
        worker.tool.may_end.set()
        await at.person.sees("… (")
        worker.may_answer.set()
        await at.person.sees("There it is.")
        await at.leave()
        assert at.person.text.count("I will look.") == 1
        assert at.person.text.count("wait: ") == 2


async def test_a_stopped_call_is_shown_as_interrupted(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watching(store, Worker(("make all",)), monkeypatch) as at:
        at.person.enter("look")
        await at.person.sees("wait: make all …")
        at.person.type(CTRL_C)
        await at.person.sees("wait: make all (interrupted, ")
        await at.person.sees("Ready.")
        await at.leave()
        assert at.person.text.count("wait: ") == 1


async def test_a_program_s_own_call_is_drawn_until_the_next_delta(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = asyncio.Event()

    async def act(brief: Brief, stage: Stage) -> Answer:
        await stage.show_call("acp_execute: make all")
        await goes_on.wait()
        await stage.say("It is ")
        return said("It is made.")

    async with running_chat(make_runtime(store), Actor(act), monkeypatch) as at:
        at.person.enter("make it")
        await at.person.sees("acp_execute: make all …")
        await at.person.sees("Working …")
        goes_on.set()
        await at.person.sees("It is made.")
        await at.leave()
        assert "make all" not in at.person.text


@pytest.mark.parametrize(
    ("session_id", "ended", "is_shown"),
    [("s1", 0, True), ("s1", 6, True), ("s1", 7, False), ("s2", 0, False)],
)
def test_a_view_from_before_a_turn_does_not_hide_its_program_calls(
    session_id: str, ended: int, *, is_shown: bool
) -> None:
    show = TurnDisplay(Screen(Console(file=StringIO())))
    show.add(Delta(session_id="s1", turn_id=7, after=1, kind="call", offset=0, text="acp_execute: make"))
    show.show_calls(
        TerminalView(
            session_id=session_id,
            cursor=ViewCursor(after=0, in_session=(session_id, 0, ended)),
            deliveries=(),
            received=(),
            elsewhere=(),
            turn=None,
            calls=(),
            queued=1,
            commands=0,
            is_due=True,
            to_send=False,
            unfinished=0,
            has_gateway=False,
        )
    )
    assert ("acp_execute: make" in "\n".join(show.draw(80, 24))) is is_shown


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"workdir": "src", "command": "ls\t-l"}, "tool: ls\\t-l"),
        ({"deep": {"text": ["first", "second"]}}, "tool: text"),
        ({"on": True, "nothing": None}, "tool"),
        ("not an object", "tool"),
        ({"path": "a" * 600}, "tool: " + "a" * 500),
        ({"path": "\u202etxt"}, "tool: \\u202etxt"),
    ],
)
def test_a_call_is_one_line_with_visible_control_characters(arguments: JsonValue, line: str) -> None:
    assert call_line("tool", arguments) == line


def test_a_program_s_own_call_has_no_duration() -> None:
    body = call_message(("c", "once")).parts
    call = ShownCall(1, 1, "c", "s", 2, "acp_execute", "once", "done", 0, 2 * SECOND, 0, str(body), None)
    assert call_ending(call) == ""
    assert call_ending(call._replace(name="terminal")) == "2.0 s"
    assert call_ending(call._replace(name="terminal", state="unknown")) == "interrupted, 2.0 s"
