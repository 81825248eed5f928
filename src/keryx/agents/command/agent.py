"""The command agent: a program of the owner answers, and runs once for each turn.

In the format ``text`` the program reads the last message and writes the answer. In ``jsonl`` it reads the whole brief
as one line and writes a line for each text and each call. Its calls run on the stage, so effects, approvals and
recovery work as for a model. The agent keeps no state between turns.
"""

import asyncio
import codecs
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from json import JSONDecodeError, dumps, loads
from pathlib import Path
from typing import Any, Final

from keryx.agents.agent import NO_ANSWER, SILENT_PURPOSES, Answer, Brief, ModelUse, Stage
from keryx.agents.briefing import CommandFormat, asked_text, brief_json, results_json
from keryx.clock import SECOND
from keryx.core.conversations.rules.message import NewMessage, TextPart, ThinkingPart, ToolCallPart
from keryx.core.values.graphemes import one_line
from keryx.errors import AgentFailed, InvalidValue
from keryx.subprocesses.start_program import ProgramSettings, RunningProgram, start_program

STOP_SECONDS: Final = 0.25
"""The time between SIGTERM and SIGKILL for a program that is stopped."""
READ_BYTES: Final = 65_536
QUOTED_MAX: Final = 200
SILENCE_SECONDS: Final = 600.0


class CommandAgent:
    """Answers with a program."""

    def __init__(
        self,
        settings: ProgramSettings,
        *,
        speaks: CommandFormat = "text",
        profile: str = "main",
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        """Answer with a program, which is ended if it writes nothing for ``silence_seconds``."""
        self._settings = settings
        self._silence_seconds = silence_seconds
        self._speaks = speaks
        self._profile = profile

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        """Answer one turn, or raise ``AgentFailed``."""
        if brief.purpose in SILENT_PURPOSES:
            return NO_ANSWER
        await stage.note_model(ModelUse(model=f"command:{self._settings.name}"))
        workspace = brief.context.workspace
        program = await start_program(
            self._settings,
            folder=None if workspace is None else Path(workspace),
            variables={
                "KERYX_PROFILE": self._profile,
                "KERYX_SESSION_ID": brief.session_id,
                "KERYX_TURN_ID": str(brief.turn_id),
                "KERYX_PLATFORM": brief.context.source.platform,
            },
        )
        error_lines: deque[str] = deque(maxlen=1)
        reading_errors = asyncio.create_task(_last_line(program, error_lines))
        deadline = asyncio.timeout(None)
        try:
            async with deadline:
                patience = _Patience(deadline, self._silence_seconds)
                speak = self._speak_text if self._speaks == "text" else self._speak_lines
                message = await speak(brief, stage, program, patience)
                with suppress(OSError, RuntimeError):
                    program.stdin.close()
                patience.renew()
                code = await program.wait()
                await reading_errors
        except TimeoutError:
            if not deadline.expired():
                raise
            raise AgentFailed(
                f"the program {self._settings.name!r} wrote nothing for {self._silence_seconds:g} s and was ended; "
                "agent.timeout_seconds in the configuration says how long it may be silent."
            ) from None
        finally:
            reading_errors.cancel()
            await program.stop(seconds=STOP_SECONDS)
        if code:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            last = one_line(error_lines[0], QUOTED_MAX) if error_lines else "it gave no reason."
            raise AgentFailed(f"the program {self._settings.name!r} {how}: {last}")
        if not message.parts:
            raise AgentFailed(f"the program {self._settings.name!r} gave an empty answer.")
        return Answer(message=message)

    async def close(self) -> None:
        """Do nothing: no program outlives its turn."""

    async def _speak_text(
        self, brief: Brief, stage: Stage, program: RunningProgram, patience: "_Patience"
    ) -> NewMessage:
        """Send the last message, and show the program's text while it is written."""
        writing = asyncio.create_task(_write(program, asked_text(brief), last=True))
        said: list[str] = []
        try:
            async for piece in patience.over(_pieces(program)):
                said.append(piece)
                await stage.say(piece)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        text = "".join(said).rstrip("\n")
        return NewMessage(
            role="assistant", parts=(TextPart(text=text),) if text.strip() else (), finish_reason="stop"
        )

    async def _speak_lines(
        self, brief: Brief, stage: Stage, program: RunningProgram, patience: "_Patience"
    ) -> NewMessage:
        """Send the brief, and carry out the program's lines; the text before a call belongs to the call's step."""
        step = _Step()
        writing = asyncio.create_task(_write(program, dumps(brief_json(brief)) + "\n"))
        try:
            async for line in patience.over(_lines(program)):
                if await step.take(self._read(line), stage):
                    calls = step.calls
                    done = await stage.act(step.message())
                    step = _Step()
                    await writing
                    writing = asyncio.create_task(_write(program, dumps(results_json(done, calls)) + "\n"))
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        return step.message()

    def _read(self, line: str) -> dict[str, Any]:
        try:
            read = loads(line)
        except JSONDecodeError:
            read = None
        if not isinstance(read, dict):
            raise AgentFailed(
                f"the program {self._settings.name!r} wrote a line that is not a JSON object; see the guide to agents."
            )
        return read


class _Patience:
    """The time limit for a program's silence. The time that Keryx takes to handle a line does not count."""

    def __init__(self, deadline: asyncio.Timeout, seconds: float) -> None:
        self._deadline = deadline
        self._seconds = seconds

    def renew(self) -> None:
        self._deadline.reschedule(asyncio.get_running_loop().time() + self._seconds)

    async def over(self, written: AsyncIterator[str]) -> AsyncIterator[str]:
        """Yield the pieces of an output, each within the time limit."""
        self.renew()
        async for each in written:
            self._deadline.reschedule(None)
            yield each
            self.renew()


class _Step:
    """The text and calls of a program since its last calls."""

    def __init__(self) -> None:
        self._said: dict[str, list[str]] = {"thinking": [], "text": []}
        self.calls: tuple[ToolCallPart, ...] = ()
        self._tokens: dict[str, Any] = {}

    async def take(self, line: dict[str, Any], stage: Stage) -> bool:
        """Take one line, and return whether it makes calls."""
        kind = line.get("type")
        if kind in ("text", "thinking") and isinstance(line.get("text"), str):
            self._said[kind].append(line["text"])
            await (stage.say if kind == "text" else stage.think)(line["text"])
        elif kind == "tools":
            self.calls = _calls(line)
        elif kind == "usage":
            names = ("input_tokens", "cached_tokens", "output_tokens")
            self._tokens = {name: line[name] for name in names if isinstance(line.get(name), int)}
        elif kind == "failed":
            raise _failure(line)
        else:
            raise AgentFailed(
                f"the program that answers wrote a line of type {str(kind)[:40]!r}, which is not known or lacks "
                "something; see the guide to agents."
            )
        return bool(self.calls)

    def message(self) -> NewMessage:
        kinds = ((ThinkingPart, "thinking"), (TextPart, "text"))
        parts = [part(text=text) for part, kind in kinds if (text := "".join(self._said[kind]))]
        try:
            return NewMessage(
                role="assistant",
                parts=(*parts, *self.calls),
                finish_reason="tool_calls" if self.calls else "stop",
                **self._tokens,
            )
        except InvalidValue as error:
            raise AgentFailed(f"the program that answers reported an impossible value: {error}") from error


def _calls(line: dict[str, Any]) -> tuple[ToolCallPart, ...]:
    try:
        calls = tuple(
            ToolCallPart(call_id=call["id"], name=call["name"], arguments=call.get("arguments", {}))
            for call in line["calls"]
        )
    except (KeyError, TypeError, AttributeError, InvalidValue) as error:
        raise AgentFailed(
            "the program that answers made a call that lacks something; a call has an id, a name and arguments."
        ) from error
    if not calls:
        raise AgentFailed("the program that answers wrote a line of calls without any.")
    return calls


def _failure(line: dict[str, Any]) -> AgentFailed:
    seconds = line.get("retry_after_seconds")
    return AgentFailed(
        one_line(str(line.get("reason") or "the program that answers gave no reason."), QUOTED_MAX),
        retry_after=round(seconds * SECOND) if isinstance(seconds, int | float) and seconds >= 0 else None,
    )


async def _write(program: RunningProgram, text: str, *, last: bool = False) -> None:
    """Write to the program; an error is ignored, because the program need not read."""
    with suppress(OSError, RuntimeError):
        program.stdin.write(text.encode("utf-8", "replace"))
        await program.stdin.drain()
        if last:
            program.stdin.close()


async def _pieces(program: RunningProgram) -> AsyncIterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := await program.stdout.read(READ_BYTES):
        if piece := decoder.decode(data):
            yield piece
    if rest := decoder.decode(b"", final=True):
        yield rest


async def _lines(program: RunningProgram) -> AsyncIterator[str]:
    async for line in program.stdout:
        if text := line.decode("utf-8", "replace").strip():
            yield text


async def _last_line(program: RunningProgram, error_lines: deque[str]) -> None:
    """Read the error output, and keep the last line that is not blank."""
    assert program.stderr is not None
    rest = b""
    while data := await program.stderr.read(READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        error_lines.extend(line.decode("utf-8", "replace") for line in lines if line.strip())
        rest = rest[-READ_BYTES:]
    if rest.strip():
        error_lines.append(rest.decode("utf-8", "replace"))
