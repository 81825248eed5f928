"""The terminal: a shell command in the workspace, run to its end before a person's eyes.

A person allows each command, unless they said that commands like it need not be asked about. It sees none of Keryx's
secrets, and nothing it starts outlives its call.
"""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from keryx.domain.json_value import JsonValue
from keryx.domain.toolset import TERMINAL
from keryx.domain.turn import StepEffect
from keryx.tools.plain import Arguments, Parameter, PlainTool
from keryx.tools.running import Program, Ran, run_program
from keryx.tools.tool import ToolFailed, Use
from keryx.tools.workspace import Workspaces

SHELL: Final = "/bin/sh"
"""The same for everybody: what a model writes does not depend on the owner's shell."""
SECONDS_DEFAULT: Final = 60
SECONDS_MAX: Final = 600
COMMAND_CHARACTERS_MAX: Final = 3_000
"""A person must be able to read what they allow, in one message of any platform."""
NO_BACKGROUND: Final = (
    "Nothing runs in the background yet: leave 'background' out, and give timeout_seconds "
    "for what takes long."
)

_PLAIN_COMMAND: Final = re.compile(r"[\w./:=@%+,\- ]+", re.ASCII)
"""Nothing in it means more to a shell than a word."""
# fmt: off
_RUNS_OTHERS: Final = frozenset(
    {
        "bash", "chroot", "command", "dash", "doas", "env", "eval", "exec", "fish", "ksh", "nice", "nohup",
        "node", "perl", "php", "python", "python3", "ruby", "setsid", "sh", "source", "ssh", "su", "sudo",
        "time", "timeout", "watch", "xargs", "zsh", ".",
    }
)
# fmt: on
"""Programs whose name says nothing about what is run."""
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")


class Terminal(PlainTool):
    """Runs a command."""

    name = "terminal"
    effect: StepEffect = "ask"
    toolset = TERMINAL
    parameters = {  # noqa: RUF012 - never changed
        "command": Parameter(help="What is run, as for sh -c", required=True),
        "workdir": Parameter(help="The folder it runs in, from the workspace on; else the workspace"),
        "timeout_seconds": Parameter(
            kind="integer",
            help=f"After how long it is ended; {SECONDS_DEFAULT} where not said",
            low=1,
            high=SECONDS_MAX,
        ),
        "pty": Parameter(kind="boolean", help="Whether it needs a terminal; nobody types at it"),
        "background": Parameter(kind="boolean", help="Whether it goes on while you do; not possible yet"),
    }

    def __init__(self, workspaces: Workspaces, *, environment: Mapping[str, str], profile: str) -> None:
        self._workspaces = workspaces
        self._environment = {**environment, "PAGER": "cat", "KERYX_PROFILE": profile}
        self.description = (
            "Run a shell command and return its output and exit code. A person is asked first. Nobody can type at it, "
            f"and what it starts ends with it. It runs in the workspace, {workspaces.default} unless this "
            "conversation names another."
        )

    async def work(self, use: Use, given: Arguments) -> JsonValue:
        """Run it and return how it ended and what it wrote."""
        self._check(given)
        folder = await asyncio.to_thread(self._folder, use, given)
        has_pty = given.flag("pty")
        seconds = given.whole("timeout_seconds", SECONDS_DEFAULT)
        ran = await run_program(
            Program(
                arguments=[SHELL, "-c", given.text("command")],
                folder=folder,
                environment={
                    **self._environment,
                    "KERYX_SESSION_ID": use.session_id,
                    "TERM": "xterm-256color" if has_pty else "dumb",
                },
                seconds=seconds,
                has_pty=has_pty,
            )
        )
        return _told(ran, seconds=seconds, has_pty=has_pty)

    def question(self, use: Use) -> str:
        """Return the command and the folder as a person is asked about them, or raise ``ToolFailed``."""
        given = self.arguments(use)
        self._check(given)
        folder = self._workspaces.default if use.workspace is None else Path(use.workspace)
        where = _visible(str(folder / given.text("workdir"))).replace("\n", "\\n")
        return f"May I run this command in {where}?\n\n{_visible(given.text('command'))}"

    def pattern(self, use: Use) -> str:
        """Return what "always" would cover: the program with whatever words; anything less plain only as it is."""
        command = self.arguments(use).text("command").strip()
        program = command.partition(" ")[0]
        is_plain = _PLAIN_COMMAND.fullmatch(command) and "=" not in program
        return f"{program} *" if is_plain and Path(program).name not in _RUNS_OTHERS else command

    def _check(self, given: Arguments) -> None:
        if given.flag("background"):
            raise ToolFailed(NO_BACKGROUND)
        command = given.text("command")
        if len(command) > COMMAND_CHARACTERS_MAX:
            raise ToolFailed(
                f"The command has {len(command)} characters; a person is asked about at most "
                f"{COMMAND_CHARACTERS_MAX}. Write it into a file and run that."
            )
        if "\0" in command:
            raise ToolFailed("The command holds a NUL character; no shell takes that.")

    def _folder(self, use: Use, given: Arguments) -> Path:
        workdir = given.text("workdir")
        folder = self._workspaces.of(use).inside(workdir)
        if not folder.is_dir():
            raise ToolFailed(f"There is no folder {workdir!r} in the workspace.")
        return folder


def _told(ran: Ran, *, seconds: int, has_pty: bool) -> str:
    output = _ESCAPES.sub("", ran.output).replace("\r\n", "\n") if has_pty else ran.output
    how = f"It was ended after {seconds} s." if ran.exit_code is None else f"Exit code {ran.exit_code}."
    if ran.left_running:
        how += " What it left running was ended."
    return f"{how}\n{output}" if output else f"{how} It wrote nothing."


def _visible(text: str) -> str:
    """Return a text in which nothing hides from the person who reads it."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)
