"""``process``: what background processes of this person do, and what is done to them.

It tells what the store knows of them, and what stands in their output. What runs on another machine is told of, and
refused where it would have to be reached; no agent believes it killed what still runs.
"""

import asyncio
from typing import Final

from keryx.clock import Micros
from keryx.domain.json_value import JsonValue
from keryx.domain.process import WAIT_SECONDS_MAX, clamp_wait
from keryx.domain.toolset import TERMINAL
from keryx.domain.turn import StepEffect
from keryx.errors import NotFound
from keryx.store.database import Database, ReadTx
from keryx.tools.background import Background, Output
from keryx.tools.terminal_text import plain_text
from keryx.tools.told import Offered
from keryx.tools.tool import ToolFailed, Use
from keryx.transactions.command_handlers.context import ago, span
from keryx.views.processes import ListedProcess, Process, get_process, list_of_session

LISTED: Final = 20
NUMBER_MAX: Final = 2**53
WAIT_SECONDS: Final = 30
SECONDS_MAX: Final = 86_400
LOOK_SECONDS: Final = 1.0
POLL_BYTES: Final = 2_000
LOG_BYTES: Final = 12_000
"""What is read of the output at once; with its heading it is no long result."""
TEXT_MAX: Final = 100_000
ACTIONS: Final = ("list", "poll", "log", "wait", "write", "submit", "close", "kill")
LOOKING: Final = frozenset({"list", "poll", "log", "wait"})


class WatchProcess(Offered):
    """Tells how processes are, waits for them, types at them and ends them."""

    name = "process"
    description = (
        "Look after background processes, which terminal starts: list this conversation's; poll one for its state and "
        "the end of its output; log reads its output, from a byte on or the end; wait for its end; write text to it "
        "as it is, or submit a line; close its input; kill it with everything it started."
    )
    effect: StepEffect = "once"
    pure_actions = LOOKING
    toolset = TERMINAL
    parameters = {  # noqa: RUF012 - never changed
        "action": {"type": "string", "enum": list(ACTIONS)},
        "number": {"type": "integer", "description": "Which process, for everything but list"},
        "text": {"type": "string", "description": "What is written or submitted"},
        "offset": {"type": "integer", "description": "From which byte on log reads; else it reads the end"},
        "lines": {
            "type": "integer",
            "description": "How many of the last lines log shows; else as many as fit",
        },
        "seconds": {
            "type": "integer",
            "description": f"How long to wait at most; {WAIT_SECONDS} if left out, {WAIT_SECONDS_MAX:.0f} at most",
        },
    }
    optional = ("number", "text", "offset", "lines", "seconds")

    def __init__(self, database: Database, background: Background) -> None:
        super().__init__(database)
        self._background = background

    async def run(self, use: Use) -> JsonValue:
        """Do it and return what is known then."""
        action = use.text("action")
        if action not in ACTIONS:
            raise ToolFailed(f"There is no action {action[:40]!r}. Use one of {', '.join(ACTIONS)}.")
        if action == "list":
            return await self._database.read(lambda tx: _list(tx, use))
        process = await self._settled(use)
        match action:
            case "poll":
                return await self._poll(process)
            case "log":
                return await self._log(use, process)
            case "wait":
                return await self._wait(use)
            case _:
                return await self._act(use, process, action)

    async def _settled(self, use: Use) -> Process:
        """Return the process as it is now."""
        process = await self._find(use)
        if process.state == "running":
            await self._background.settle(process)
            process = await self._find(use)
        return process

    async def _find(self, use: Use) -> Process:
        try:
            return await self._database.read(lambda tx: _find(tx, use))
        except NotFound as error:
            raise ToolFailed(f"{error} The action list shows those of this conversation.") from error

    async def _poll(self, process: Process) -> str:
        """Return how it is, with the end of what it wrote where that is at hand."""
        told = await self._database.read(lambda tx: _line(process, now=tx.now))
        try:
            output = await self._background.read(process, start=None, bytes_max=POLL_BYTES)
        except ToolFailed as reason:
            wrote = f", {process.output_bytes} bytes of output" if process.output_bytes else ""
            return f"{told}{wrote}. {reason}"
        if not output.total:
            return f"{told}. It wrote nothing so far."
        return f"{told}, {output.total} bytes of output. The end of it:\n{_text(process, output)}"

    async def _log(self, use: Use, process: Process) -> str:
        """Return a piece of the output, and what piece it is."""
        start = _offset(use)
        lines = use.number("lines", otherwise=LOG_BYTES, most=LOG_BYTES)
        output = await self._background.read(process, start=start, bytes_max=LOG_BYTES)
        output = output.first(lines) if start is not None else output.last(lines)
        heading = f"Bytes {output.start} to {output.end} of {output.total}."
        if output.kept_from:
            heading += f" What was written before byte {output.kept_from} is no longer kept."
        return f"{heading}\n{_text(process, output)}"

    async def _wait(self, use: Use) -> str:
        """Return how the process is when it has ended, or when the time is up."""
        asked = use.number("seconds", otherwise=WAIT_SECONDS, most=SECONDS_MAX)
        wait = clamp_wait(asked)
        note = f"Waited {wait.seconds:.0f} s at most instead of {asked}. " if wait.clamped else ""
        try:
            async with asyncio.timeout(wait.seconds):
                await self._ended(use)
        except TimeoutError:
            pass
        return note + await self._poll(await self._settled(use))

    async def _ended(self, use: Use) -> None:
        database = self._database
        while True:
            since = database.change_no
            if (await self._settled(use)).state != "running":
                return
            await database.changed(since=since, timeout_seconds=LOOK_SECONDS)

    async def _act(self, use: Use, process: Process, action: str) -> str:
        if process.state != "running":
            raise ToolFailed(f"Nothing was done: process {process.id} has ended ({process.state}).")
        match action:
            case "kill":
                await self._background.kill(process)
                return await self._poll(await self._settled(use))
            case "close":
                await self._background.close_input(process)
                return (
                    f"The input of process {process.id} is closed."
                    if not process.has_pty
                    else (f"Process {process.id} was told that its input ends.")
                )
            case _:
                data = _typed(use, process, action)
                await self._background.write(process, data)
                return f"{len(data)} bytes were written to process {process.id}."


def _offset(use: Use) -> int | None:
    """Return the byte from which on is read, None for the end; the first one is 0, which ``number`` counts as none."""
    offset = use.arguments.get("offset")
    return (
        None if offset is None else 0 if offset == 0 else use.number("offset", otherwise=0, most=NUMBER_MAX)
    )


def _typed(use: Use, process: Process, action: str) -> bytes:
    """Return what is written; a line typed at a terminal ends as the return key ends it."""
    text = use.arguments.get("text")
    if not isinstance(text, str) or not (text or action == "submit"):
        raise ToolFailed("Give 'text': what is written to the process.")
    if len(text) > TEXT_MAX:
        raise ToolFailed(f"The text has {len(text)} characters; give at most {TEXT_MAX} at once.")
    end = "" if action == "write" else "\r" if process.has_pty else "\n"
    return f"{text}{end}".encode("utf-8", "replace")


def _text(process: Process, output: Output) -> str:
    """Return a piece of output as text, without the pieces of characters at its ends."""
    data = output.data
    while data and output.start and 0x80 <= data[0] < 0xC0 and len(output.data) - len(data) < 3:
        data = data[1:]
    text = data.decode("utf-8", "replace")
    return plain_text(text) if process.has_pty else text


def _find(tx: ReadTx, use: Use) -> Process:
    if use.arguments.get("number") is None:
        raise ToolFailed("Give 'number': which process; the action list shows them.")
    return get_process(
        tx,
        use.number("number", otherwise=0, most=NUMBER_MAX),
        session_id=use.session_id,
        person_id=use.person_id,
        audience_id=use.audience_id,
    )


def _list(tx: ReadTx, use: Use) -> str:
    try:
        listed = list_of_session(tx, use.session_id, person_id=use.person_id, limit=LISTED)
    except NotFound as error:
        raise ToolFailed(str(error)) from error
    lines = [_line(each, now=tx.now) for each in listed]
    return "\n".join(lines) or "This conversation has no background processes."


def _line(process: Process | ListedProcess, *, now: Micros) -> str:
    if process.ended_at is None:
        return f"{process.id}. {process.command}: {process.state} for {span(now - process.started_at)}"
    code = "" if process.exit_code is None else f" with code {process.exit_code}"
    return f"{process.id}. {process.command}: {process.state}{code} {ago(process.ended_at, now=now)}"
