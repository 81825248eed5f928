"""The command agent: a program of the owner's, run once for each turn, answers it.

In the format ``text`` it reads the last message and writes the answer. In ``jsonl`` it reads the whole brief as one
line and writes a line for each thing it says or does; what it calls is carried out on the stage, so that effects,
approvals and recovery are the same for it as for a model. It holds nothing between turns.
"""

import asyncio
import codecs
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from json import JSONDecodeError, dumps, loads
from pathlib import Path
from typing import Any, Final

from keryx.agents.agent import AgentFailed, Answer, Brief, Stage
from keryx.agents.briefing import answered_by, asked_text, brief_json, results_json
from keryx.agents.program import Program, ProgramSettings, start_program
from keryx.clock import SECOND
from keryx.config import CommandFormat
from keryx.domain.graphemes import one_line
from keryx.domain.message import NewMessage, Part, TextPart, ThinkingPart, ToolCallPart
from keryx.errors import InvalidValue

STOP_SECONDS: Final = 0.25
"""How long a program that is told to stop may take, before it is ended by force."""
READ_BYTES: Final = 65_536
QUOTED_MAX: Final = 200
SILENCE_SECONDS: Final = 600.0
SILENT_PURPOSES: Final = ("flush", "title", "compress")


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
        """Answer with a program, which is ended when it writes nothing for so long."""
        self._settings = settings
        self._silence_seconds = silence_seconds
        self._speaks = speaks
        self._profile = profile

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        """Answer one turn, or raise ``AgentFailed``."""
        if brief.purpose in SILENT_PURPOSES:
            return Answer(message=None, silent=True)
        await stage.note_model(answered_by(f"command:{self._settings.name}"))
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
        complaints: deque[str] = deque(maxlen=1)
        hearing = asyncio.create_task(_last_line(program, complaints))
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
                await hearing
        except TimeoutError:
            if not deadline.expired():
                raise
            raise AgentFailed(
                f"the program {self._settings.name!r} wrote nothing for {self._silence_seconds:g} s and was ended; "
                "agent.timeout_seconds in the configuration says how long it may be silent."
            ) from None
        finally:
            hearing.cancel()
            await program.stop(seconds=STOP_SECONDS)
        if code:
            raise AgentFailed(_ended_badly(self._settings.name, code, complaints))
        if not message.parts:
            raise AgentFailed(f"the program {self._settings.name!r} gave an empty answer.")
        return Answer(message=message)

    async def close(self) -> None:
        """It holds nothing."""

    async def _speak_text(
        self, brief: Brief, stage: Stage, program: Program, patience: "_Patience"
    ) -> NewMessage:
        """Give it what was asked, and show what it writes as it comes."""
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
        self, brief: Brief, stage: Stage, program: Program, patience: "_Patience"
    ) -> NewMessage:
        """Give it the brief, and do what its lines say; what was said before a call belongs to the call's step."""
        told = _Told()
        writing = asyncio.create_task(_write(program, dumps(brief_json(brief)) + "\n"))
        try:
            async for line in patience.over(_lines(program)):
                if await told.take(self._read(line), stage):
                    calls = told.calls
                    done = await stage.act(told.message())
                    told = _Told()
                    await writing
                    writing = asyncio.create_task(_write(program, dumps(results_json(done, calls)) + "\n"))
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        return told.message()

    def _read(self, line: str) -> dict[str, Any]:
        try:
            read = loads(line)
        except JSONDecodeError:
            read = None
        if not isinstance(read, dict):
            raise AgentFailed(
                f"the program {self._settings.name!r} wrote a line that is no JSON object; see the guide to agents."
            )
        return read


class _Patience:
    """How long a program may be silent; the time we take for what it wrote is not its own."""

    def __init__(self, deadline: asyncio.Timeout, seconds: float) -> None:
        self._deadline = deadline
        self._seconds = seconds

    def renew(self) -> None:
        """Wait as long again from now on."""
        self._deadline.reschedule(asyncio.get_running_loop().time() + self._seconds)

    async def over(self, written: AsyncIterator[str]) -> AsyncIterator[str]:
        """Yield what is written, as long as the next of it comes in time."""
        self.renew()
        async for each in written:
            self._deadline.reschedule(None)
            yield each
            self.renew()


class _Told:
    """What a program has said since its last calls."""

    def __init__(self) -> None:
        self._said: dict[str, list[str]] = {"thinking": [], "text": []}
        self.calls: tuple[ToolCallPart, ...] = ()
        self._tokens: dict[str, Any] = {}

    async def take(self, line: dict[str, Any], stage: Stage) -> bool:
        """Take one line, and say whether it makes calls."""
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
        """Return all of it as a message."""
        thought, text = ("".join(self._said[kind]) for kind in ("thinking", "text"))
        parts: list[Part] = []
        if thought:
            parts.append(ThinkingPart(text=thought))
        if text:
            parts.append(TextPart(text=text))
        try:
            return NewMessage(
                role="assistant",
                parts=(*parts, *self.calls),
                finish_reason="tool_calls" if self.calls else "stop",
                **self._tokens,
            )
        except InvalidValue as error:
            raise AgentFailed(f"the program that answers told of something impossible: {error}") from error


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


def _ended_badly(name: str, code: int, complaints: deque[str]) -> str:
    how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
    last = one_line(complaints[0], QUOTED_MAX) if complaints else "it did not say why."
    return f"the program {name!r} {how}: {last}"


async def _write(program: Program, text: str, *, last: bool = False) -> None:
    """Write to the program, whether it listens or not."""
    with suppress(OSError, RuntimeError):
        program.stdin.write(text.encode("utf-8", "replace"))
        await program.stdin.drain()
        if last:
            program.stdin.close()


async def _pieces(program: Program) -> AsyncIterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := await program.stdout.read(READ_BYTES):
        if piece := decoder.decode(data):
            yield piece
    if rest := decoder.decode(b"", final=True):
        yield rest


async def _lines(program: Program) -> AsyncIterator[str]:
    async for line in program.stdout:
        if text := line.decode("utf-8", "replace").strip():
            yield text


async def _last_line(program: Program, complaints: deque[str]) -> None:
    """Read what it complains of, and keep the last line that says something."""
    assert program.stderr is not None
    rest = b""
    while data := await program.stderr.read(READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        complaints.extend(line.decode("utf-8", "replace") for line in lines if line.strip())
        rest = rest[-READ_BYTES:]
    if rest.strip():
        complaints.append(rest.decode("utf-8", "replace"))
