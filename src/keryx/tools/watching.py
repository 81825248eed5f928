"""``process``: what background processes of this person do.

It tells what the store knows of them. What needs the hand of their supervisor is refused with a sentence until there is
one, so that no agent believes it killed what still runs.
"""

import asyncio
from typing import Final

from keryx.clock import Micros
from keryx.domain.json_value import JsonValue
from keryx.domain.process import WAIT_SECONDS_MAX, clamp_wait
from keryx.domain.toolset import TERMINAL
from keryx.errors import NotFound
from keryx.store.database import ReadTx
from keryx.tools.told import Offered
from keryx.tools.tool import ToolFailed, Use
from keryx.transactions.command_handlers.context import ago, span
from keryx.views.processes import ListedProcess, Process, get_process, list_of_session

LISTED: Final = 20
NUMBER_MAX: Final = 2**53
WAIT_SECONDS: Final = 30
SECONDS_MAX: Final = 86_400
LOOK_SECONDS: Final = 5.0
ACTIONS: Final = ("list", "poll", "log", "wait", "write", "submit", "kill", "close")
NOT_YET: Final = (
    "Nothing was done: {action} needs the supervisor of background processes, which this version of Keryx does not "
    "have. list, poll and wait work."
)


class WatchProcess(Offered):
    """Tells how processes are, and waits for them."""

    name = "process"
    description = (
        "Look after background processes: list this conversation's, poll one for its state, wait for its end."
    )
    toolset = TERMINAL
    parameters = {  # noqa: RUF012 - never changed
        "action": {"type": "string", "enum": list(ACTIONS)},
        "number": {"type": "integer", "description": "Which process, for everything but list"},
        "seconds": {
            "type": "integer",
            "description": f"How long to wait at most; {WAIT_SECONDS} if left out, {WAIT_SECONDS_MAX:.0f} at most",
        },
    }
    optional = ("number", "seconds")

    async def run(self, use: Use) -> JsonValue:
        """Return what is known, at once or when there is news."""
        action = use.text("action")
        if action not in ACTIONS:
            raise ToolFailed(f"There is no action {action[:40]!r}. Use list, poll or wait.")
        try:
            match action:
                case "list":
                    return await self._database.read(lambda tx: _list(tx, use))
                case "poll":
                    return await self._database.read(lambda tx: _told(_find(tx, use), now=tx.now))
                case "wait":
                    return await self._wait(use)
                case _:
                    # Whether there is such a process is told first: a wrong number is the likelier mistake.
                    await self._database.read(lambda tx: _find(tx, use))
                    raise ToolFailed(NOT_YET.format(action=action))
        except NotFound as error:
            raise ToolFailed(f"{error} The action list shows those of this conversation.") from error

    async def _wait(self, use: Use) -> str:
        """Return how the process is when it has ended, or when the time is up."""
        asked = use.number("seconds", otherwise=WAIT_SECONDS, most=SECONDS_MAX)
        wait = clamp_wait(asked)
        note = f" (waited {wait.seconds:.0f} s instead of {asked})" if wait.clamped else ""
        try:
            async with asyncio.timeout(wait.seconds):
                await self._ended(use)
        except TimeoutError:
            pass
        return await self._database.read(lambda tx: _told(_find(tx, use), now=tx.now)) + note

    async def _ended(self, use: Use) -> None:
        database = self._database
        while True:
            since = database.change_no
            found = await database.read(lambda tx: _find(tx, use))
            if found.state != "running":
                return
            await database.changed(since=since, timeout_seconds=LOOK_SECONDS)


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
    listed = list_of_session(tx, use.session_id, person_id=use.person_id, limit=LISTED)
    lines = [_line(each, now=tx.now) for each in listed]
    return "\n".join(lines) or "This conversation has no background processes."


def _told(process: Process, *, now: Micros) -> str:
    output = f", {process.output_bytes} bytes of output" if process.output_bytes else ""
    return f"{_line(process, now=now)}{output}"


def _line(process: Process | ListedProcess, *, now: Micros) -> str:
    if process.ended_at is None:
        return f"{process.id}. {process.command}: {process.state} for {span(now - process.started_at)}"
    code = "" if process.exit_code is None else f" with code {process.exit_code}"
    return f"{process.id}. {process.command}: {process.state}{code} {ago(process.ended_at, now=now)}"
