"""``process``: show the person's background processes, write to them and end them.

The answers come from the store and from the output of the process. A process on another machine is described, and an
action that would have to reach it is refused, so that no agent believes it ended a process that still runs.
"""

import asyncio
from typing import Final

from keryx.clock import Micros
from keryx.core.conversations.transactions.command_context import ago, span
from keryx.core.people.rules.toolset import TERMINAL
from keryx.core.processes.backend import Background, Output
from keryx.core.processes.rules import WAIT_SECONDS_MAX, clamp_wait
from keryx.core.processes.views import ListedProcess, Process, get_process, list_of_session
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import NotFound, ToolFailed
from keryx.store.database import Database, ReadTx
from keryx.subprocesses.terminal_text import output_text
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import ToolCall

LISTED: Final = 20
NUMBER_MAX: Final = 2**53
WAIT_SECONDS: Final = 30
SECONDS_MAX: Final = 86_400
LOOK_SECONDS: Final = 1.0
POLL_BYTES: Final = 2_000
LOG_BYTES: Final = 12_000
"""The bytes of output that one call reads. With its heading this is not yet a long result."""
TEXT_MAX: Final = 100_000
ACTIONS: Final = ("list", "poll", "log", "wait", "write", "submit", "close", "kill")
READING_ACTIONS: Final = frozenset({"list", "poll", "log", "wait"})


class ProcessTool(BaseTool):
    """Looks at processes, waits for them, writes to them and ends them."""

    name = "process"
    description = (
        "Manage background processes, which terminal starts: list those of this conversation; poll one for its state "
        "and the end of its output; log reads its output, from a byte on or the end; wait for its end; write text to "
        "its input, or submit a line; close its input; kill it with everything it started."
    )
    effect: StepEffect = "once"
    pure_actions = READING_ACTIONS
    toolset = TERMINAL
    parameters = {  # noqa: RUF012 - never changed
        "action": Parameter(choices=ACTIONS, required=True),
        "number": Parameter(kind="integer", help="The process, for every action but list"),
        "text": Parameter(help="The text to write or submit"),
        "offset": Parameter(kind="integer", help="From which byte on log reads; else it reads the end"),
        "lines": Parameter(kind="integer", help="How many of the last lines log shows; else as many as fit"),
        "seconds": Parameter(
            kind="integer",
            help=f"How long to wait at most; {WAIT_SECONDS} if left out, {WAIT_SECONDS_MAX:.0f} at most",
        ),
    }

    def __init__(self, database: Database, background: Background) -> None:
        self._database = database
        self._background = background

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Carry out the action and return the state of the process afterwards."""
        action = given.text("action")
        if action == "list":
            return await self._database.read(lambda tx: _list(tx, call))
        number = given.needed_number("number", high=NUMBER_MAX)
        process = await self._settled(call, number)
        match action:
            case "poll":
                return await self._poll(process)
            case "log":
                return await self._log(process, given)
            case "wait":
                return await self._wait(call, number, given)
            case _:
                return await self._act(call, process, given)

    async def _settled(self, call: ToolCall, number: int) -> Process:
        process = await self._find(call, number)
        if process.state == "running":
            await self._background.settle(process)
            process = await self._find(call, number)
        return process

    async def _find(self, call: ToolCall, number: int) -> Process:
        try:
            return await self._database.read(
                lambda tx: get_process(
                    tx,
                    number,
                    session_id=call.session_id,
                    person_id=call.person_id,
                    audience_id=call.audience_id,
                )
            )
        except NotFound as error:
            raise ToolFailed(f"{error} The action list shows those of this conversation.") from error

    async def _poll(self, process: Process) -> str:
        """Return the state of the process, with the end of its output if that can be read here."""
        state = await self._database.read(lambda tx: _line(process, now=tx.now))
        try:
            output = await self._background.read(process, start=None, bytes_max=POLL_BYTES)
        except ToolFailed as reason:
            wrote = f", {process.output_bytes} bytes of output" if process.output_bytes else ""
            return f"{state}{wrote}. {reason}"
        if not output.total:
            return f"{state}. It wrote nothing so far."
        return f"{state}, {output.total} bytes of output. The end of it:\n{_text(process, output)}"

    async def _log(self, process: Process, given: Arguments) -> str:
        """Return a piece of the output below a heading with its place."""
        start = given.whole_or_none("offset", low=0, high=NUMBER_MAX)
        lines = given.whole("lines", LOG_BYTES, low=1, high=LOG_BYTES)
        output = await self._background.read(process, start=start, bytes_max=LOG_BYTES)
        output = output.first(lines) if start is not None else output.last(lines)
        heading = f"Bytes {output.start} to {output.end} of {output.total}."
        if output.kept_from:
            heading += f" The output before byte {output.kept_from} is no longer kept."
        return f"{heading}\n{_text(process, output)}"

    async def _wait(self, call: ToolCall, number: int, given: Arguments) -> str:
        """Return the state of the process when it has ended, or when the time is up."""
        asked = given.whole("seconds", WAIT_SECONDS, low=1, high=SECONDS_MAX)
        wait = clamp_wait(asked)
        note = f"Waited {wait.seconds:.0f} s at most instead of {asked}. " if wait.clamped else ""
        try:
            async with asyncio.timeout(wait.seconds):
                await self._ended(call, number)
        except TimeoutError:
            pass
        return note + await self._poll(await self._settled(call, number))

    async def _ended(self, call: ToolCall, number: int) -> None:
        database = self._database
        while True:
            since = database.change_no
            if (await self._settled(call, number)).state != "running":
                return
            await database.changed(since=since, timeout_seconds=LOOK_SECONDS)

    async def _act(self, call: ToolCall, process: Process, given: Arguments) -> str:
        if process.state != "running":
            raise ToolFailed(f"Nothing was done: process {process.id} has ended ({process.state}).")
        match given.text("action"):
            case "kill":
                await self._background.kill(process)
                return await self._poll(await self._settled(call, process.id))
            case "close":
                await self._background.close_input(process)
                if process.has_pty:
                    return f"Process {process.id} was told that its input ends."
                return f"The input of process {process.id} is closed."
            case _:
                data = _input(process, given)
                await self._background.write(process, data)
                return f"{len(data)} bytes were written to process {process.id}."


def _input(process: Process, given: Arguments) -> bytes:
    """Return the bytes to write; a line for a terminal ends as the return key ends it."""
    text, action = given.text("text"), given.text("action")
    if "text" not in given.given or not (text or action == "submit"):
        raise ToolFailed("Give 'text': the text to write to the process.")
    if len(text) > TEXT_MAX:
        raise ToolFailed(f"The text has {len(text)} characters; give at most {TEXT_MAX} at once.")
    end = "" if action == "write" else "\r" if process.has_pty else "\n"
    return f"{text}{end}".encode("utf-8", "replace")


def _text(process: Process, output: Output) -> str:
    """Return a piece of output as text, without an incomplete character at its beginning."""
    data = output.data
    while data and output.start and 0x80 <= data[0] < 0xC0 and len(output.data) - len(data) < 3:
        data = data[1:]
    return output_text(data, has_pty=bool(process.has_pty))


def _list(tx: ReadTx, call: ToolCall) -> str:
    listed = list_of_session(tx, call.session_id, person_id=call.person_id, limit=LISTED)
    lines = [_line(each, now=tx.now) for each in listed]
    return "\n".join(lines) or "This conversation has no background processes."


def _line(process: Process | ListedProcess, *, now: Micros) -> str:
    if process.ended_at is None:
        return f"{process.id}. {process.command}: {process.state} for {span(now - process.started_at)}"
    code = "" if process.exit_code is None else f" with code {process.exit_code}"
    return f"{process.id}. {process.command}: {process.state}{code} {ago(process.ended_at, now=now)}"
