"""``terminal``: run a shell command in the workspace, to its end or in the background.

A person allows each command, unless a standing approval covers it. The command sees none of Keryx's secrets. Nothing
that it starts outlives the call, except a background process. A background process can be written to without another
question, so no standing approval for the beginning of a command covers it.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from keryx.core.approvals.rules.harmless_commands import harmless_beginning
from keryx.core.people.rules.toolset import TERMINAL
from keryx.core.processes.backend import Background, BackgroundCommand
from keryx.core.processes.rules import NoticePolicy
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import InvalidValue, ToolFailed
from keryx.subprocesses.run_program import SHELL, Program, RunResult, run_program
from keryx.subprocesses.terminal_text import plain_text
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import ToolCall
from keryx.tools.workspace import Workspaces

SECONDS_DEFAULT: Final = 60
SECONDS_MAX: Final = 600
COMMAND_CHARACTERS_MAX: Final = 3_000
"""A person must be able to read the command in one message of any platform."""
NEVER_STANDING: Final = ""
"""A pattern that covers no call: the person allows this call only."""
MINUTES_MAX: Final = 24 * 60
BACKGROUND_ONLY: Final = ("watch", "every_minutes", "quiet")
"""The arguments that are only for a background process."""

_GIT: Final = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
}
"""File tools write without asking, so a folder that they fill must not pass for a repository, which can make git run
programs."""


class Terminal(BaseTool):
    """Runs a shell command."""

    name = "terminal"
    effect: StepEffect = "ask"
    toolset = TERMINAL
    parameters = {  # noqa: RUF012 - never changed
        "command": Parameter(help="The command, as for sh -c", required=True),
        "workdir": Parameter(help="The folder it runs in, from the workspace on; else the workspace"),
        "timeout_seconds": Parameter(
            kind="integer",
            help=f"The time limit; {SECONDS_DEFAULT} if left out",
            low=1,
            high=SECONDS_MAX,
        ),
        "pty": Parameter(kind="boolean", help="Whether it needs a terminal"),
        "background": Parameter(
            kind="boolean", help="Whether it runs on while you continue; the tool process manages it"
        ),
        "watch": Parameter(help="In the background: you get a notice when this text is first written"),
        "every_minutes": Parameter(
            kind="integer",
            help="In the background: how often you get a notice that it still runs; never if left out",
            low=1,
            high=MINUTES_MAX,
        ),
        "quiet": Parameter(kind="boolean", help="In the background: whether you get no notice of its end"),
    }

    def __init__(
        self,
        workspaces: Workspaces,
        *,
        environment: Mapping[str, str],
        profile: str,
        background: Background,
    ) -> None:
        self._workspaces = workspaces
        self._background = background
        self._environment = {**environment, **_GIT, "PAGER": "cat", "KERYX_PROFILE": profile}
        self.description = (
            "Run a shell command and return its output and exit code. A person is asked first. The command gets no "
            "input, and its child processes end with it, unless it runs in the background: then its number is "
            "returned at once, and you get a notice when it has ended. It runs in the workspace, "
            f"{workspaces.default} unless this conversation names another."
        )

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Run the command and return its exit code and output; or start it in the background and return its number."""
        notice = self._check(given)
        folder = await asyncio.to_thread(lambda: self._workspaces.of(call).folder(given.text("workdir")))
        has_pty = given.flag("pty")
        environment = {
            **self._environment,
            "KERYX_SESSION_ID": call.session_id,
            "TERM": "xterm-256color" if has_pty else "dumb",
        }
        if given.flag("background"):
            job = BackgroundCommand(
                command=given.text("command"),
                folder=folder,
                environment=environment,
                has_pty=has_pty,
                notice=notice,
            )
            number = await self._background.start(job, session_id=call.session_id, person_id=call.person_id)
            return _started(number, notice)
        seconds = given.whole("timeout_seconds", SECONDS_DEFAULT)
        ran = await run_program(
            Program(
                arguments=[SHELL, "-c", given.text("command")],
                folder=folder,
                environment=environment,
                seconds=seconds,
                has_pty=has_pty,
            )
        )
        return _answer(ran, seconds=seconds, has_pty=has_pty)

    def question(self, call: ToolCall) -> str:
        """Return the question to the person, with the command and the folder, or raise ``ToolFailed``."""
        given = self.arguments(call)
        self._check(given)
        folder = self._workspaces.default if call.workspace is None else Path(call.workspace)
        where = _visible(str(folder / given.text("workdir"))).replace("\n", "\\n")
        how = " in the background, with input from the agent," if given.flag("background") else ""
        return f"May I run this command{how} in {where}?\n\n{_visible(given.text('command'))}"

    def pattern(self, call: ToolCall) -> str:
        """Return what "always" would cover: any arguments of a program that only reads, else this very command."""
        given = self.arguments(call)
        if given.flag("background"):
            return NEVER_STANDING
        command = given.text("command").strip()
        return harmless_beginning(command) or command

    def _check(self, given: Arguments) -> NoticePolicy:
        """Return when the session is notified, or raise ``ToolFailed``."""
        _check_together(given)
        command = given.text("command")
        if len(command) > COMMAND_CHARACTERS_MAX:
            raise ToolFailed(
                f"The command has {len(command)} characters; a person is asked about at most "
                f"{COMMAND_CHARACTERS_MAX}. Write it into a file and run that."
            )
        if "\0" in command:
            raise ToolFailed("The command holds a NUL character; no shell takes that.")
        try:
            return NoticePolicy(
                on_exit=not given.flag("quiet"),
                patterns=(given.text("watch"),) if given.text("watch") else (),
                every_minutes=given.whole("every_minutes", 0) or None,
            )
        except InvalidValue as error:
            raise ToolFailed(f"These notices are not possible: {error}.") from error


def _check_together(given: Arguments) -> None:
    """Raise ``ToolFailed`` for arguments that exclude each other."""
    if given.flag("background"):
        if "timeout_seconds" in given.given:
            raise ToolFailed(
                "'timeout_seconds' is not for the background: the tool process kills what takes too long."
            )
        return
    for name in BACKGROUND_ONLY:
        if name in given.given:
            raise ToolFailed(
                f"{name!r} is for what runs in the background; give 'background', too, or leave it out."
            )


def _started(number: int, notice: NoticePolicy) -> str:
    news = ["when it ends"] if notice.on_exit else []
    news += [f"when it first writes {pattern!r}" for pattern in notice.patterns]
    news += [f"every {notice.every_minutes} minutes"] if notice.every_minutes else []
    notices = f" You get a notice {', and '.join(news)}." if news else ""
    return (
        f"Process {number} runs in the background.{notices} The tool process with number {number} manages it: "
        "poll, log, wait, write, submit, close, kill."
    )


def _answer(ran: RunResult, *, seconds: int, has_pty: bool) -> str:
    output = plain_text(ran.output) if has_pty else ran.output
    how = f"It was ended after {seconds} s." if ran.exit_code is None else f"Exit code {ran.exit_code}."
    if ran.left_running:
        how += " Processes that it left running were ended."
    return f"{how}\n{output}" if output else f"{how} It wrote nothing."


def _visible(text: str) -> str:
    """Return a text with invisible characters written out, so that none hides from the reader."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)
