"""Speak the Agent Client Protocol with a program, with the protocol's own package.

This module is imported when the first turn needs it. No error quotes people's messages, and updates of the program that
cannot be read are ignored.
"""

import asyncio
import logging
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import acp
from acp import schema

from keryx.agents.acp.contract import (
    PermissionRequest,
    ProgramEvent,
    PromptEnd,
    PromptImage,
    TextChunk,
    ToolUpdate,
)
from keryx.core.values.graphemes import one_line
from keryx.core.values.json_value import JsonValue, check_json
from keryx.errors import AgentFailed, InvalidValue
from keryx.subprocesses.start_program import ProgramSettings, RunningProgram, open_errors, start_program

END_SECONDS: Final = 2.0
QUOTED_MAX: Final = 200
AUTH_REQUIRED: Final = -32000

_log = logging.getLogger("keryx.agents.acp.agent")


async def connect(settings: ProgramSettings, errors: Path) -> "AcpConnection":
    """Start the program and connect to it; its error output is appended to the file ``errors``."""
    with open_errors(errors) as file:
        program = await start_program(settings, errors=file)
    connection = AcpConnection(program, settings.name)
    try:
        async with asyncio.timeout(settings.start_seconds):
            await connection.initialize()
    except TimeoutError:
        await connection.close()
        raise AgentFailed(
            f"the program {settings.name!r} did not answer in time; is it an ACP agent?"
        ) from None
    except BaseException:
        await connection.close()
        raise
    return connection


class AcpConnection:
    """The connection to a running program."""

    def __init__(self, program: RunningProgram, name: str) -> None:
        self._program = program
        self.name = name
        self.takes_images = False
        self._can_load = False
        self._is_lost = False
        self._prompts: dict[str, AcpPrompt] = {}
        self._peer = acp.connect_to_agent(
            cast(Any, _Client(self)), program.stdin, program.stdout, use_unstable_protocol=True
        )
        self._watching = asyncio.create_task(self._watch(), name="keryx-acp")

    @property
    def is_gone(self) -> bool:
        """Whether the program has ended, or reads no more."""
        return self._is_lost or self._watching.done()

    async def _watch(self) -> None:
        code = await self._program.wait()
        _log.info("the agent program %s ended with code %s", self.name, code)

    async def initialize(self) -> None:
        """Learn the capabilities of the program."""
        answer = await self._call(
            self._peer.initialize(
                protocol_version=acp.PROTOCOL_VERSION,
                client_capabilities=schema.ClientCapabilities(),
                client_info=schema.Implementation(name="keryx", version="1"),
            )
        )
        can = answer.agent_capabilities
        self._can_load = bool(can and can.load_session)
        self.takes_images = bool(can and can.prompt_capabilities and can.prompt_capabilities.image)

    async def open(self, folder: str) -> str:
        """Open a session of the program and return its id, or raise ``AgentFailed``."""
        opened = await self._call(self._peer.new_session(cwd=folder, mcp_servers=[]))
        return str(opened.session_id)

    async def load(self, session: str, folder: str) -> bool:
        """Load an earlier session, and return whether that worked; the messages that it replays are ignored."""
        if not self._can_load:
            return False
        try:
            await self._call(self._peer.load_session(cwd=folder, session_id=session, mcp_servers=[]))
        except AgentFailed:
            return False
        return True

    def ask(self, session: str, text: str, images: Sequence[PromptImage] = ()) -> "AcpPrompt":
        """Send a prompt in a session."""
        blocks: list[Any] = [acp.text_block(text)]
        blocks += [acp.image_block(b64encode(each.content).decode(), each.media_type) for each in images]
        prompt = AcpPrompt(self, self._peer, session, blocks)
        self._prompts[session] = prompt
        return prompt

    async def close(self) -> None:
        """End the program."""
        with suppress(Exception):  # an error here must not prevent the end of the program
            async with asyncio.timeout(END_SECONDS):
                await self._peer.close()
        await self._program.end(seconds=END_SECONDS)
        await self._watching

    def lose(self) -> None:
        """Note that the program reads no more; this is known before its end is."""
        self._is_lost = True

    def pass_on(self, session: str, event: ProgramEvent) -> bool:
        """Pass an event to the session's prompt; return False if the session has no prompt."""
        prompt = self._prompts.get(session)
        if prompt is None or prompt.is_over:
            return False
        prompt.add(event)
        return True

    async def _call(self, request: Any) -> Any:
        try:
            return await request
        except acp.RequestError as error:
            raise AgentFailed(reason_of(error, self.name)) from error
        except (ConnectionError, RuntimeError) as error:
            self.lose()
            raise AgentFailed(f"the program {self.name!r} ended instead of answering.") from error


class AcpPrompt:
    """A prompt that the program works on."""

    def __init__(self, connection: AcpConnection, peer: Any, session: str, blocks: list[Any]) -> None:
        self._connection = connection
        self._peer = peer
        self._session = session
        self._name = connection.name
        self._events: asyncio.Queue[ProgramEvent] = asyncio.Queue()
        self._requests: list[PermissionRequest] = []
        self._task = asyncio.create_task(self._run(blocks), name="keryx-acp-prompt")

    @property
    def is_over(self) -> bool:
        """Whether it has ended, even if events of it are not read yet."""
        return self._task.done()

    def add(self, event: ProgramEvent) -> None:
        """Add an event for the reader."""
        if isinstance(event, PermissionRequest):
            self._requests.append(event)
        self._events.put_nowait(event)

    async def next(self) -> ProgramEvent:
        """Return the next event; the last one is a ``PromptEnd``."""
        return await self._events.get()

    async def cancel(self) -> None:
        """Ask the program to end it, and return when it has ended; its permission requests are cancelled."""
        for request in self._requests:
            request.decided.cancel()
        with suppress(ConnectionError, RuntimeError):
            await self._peer.cancel(session_id=self._session)
        await asyncio.shield(self._task)

    async def _run(self, blocks: list[Any]) -> None:
        try:
            ended = await self._peer.prompt(session_id=self._session, prompt=blocks)
        except acp.RequestError as error:
            self.add(PromptEnd(reason=reason_of(error, self._name), has_failed=True))
        except (ConnectionError, RuntimeError):
            self._connection.lose()
            reason = f"the program {self._name!r} ended in the middle."
            self.add(PromptEnd(reason=reason, has_failed=True, is_lost=True))
        except ValueError:
            self.add(PromptEnd(reason=f"the answer of {self._name!r} cannot be read.", has_failed=True))
        else:
            used = ended.usage
            self.add(
                PromptEnd(
                    reason=ended.stop_reason,
                    input_tokens=used.input_tokens if used else 0,
                    cached_tokens=(used.cached_read_tokens or 0) if used else 0,
                    output_tokens=used.output_tokens if used else 0,
                )
            )


class _Client:
    """The calls that the program may make: updates of a session, and requests for a permission."""

    def __init__(self, connection: AcpConnection) -> None:
        self._connection = connection

    def on_connect(self, conn: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        """Pass an update on. The code before the first await runs in the order of the updates."""
        event = _read_event(update)
        if event is not None:
            self._connection.pass_on(session_id, event)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_more: Any
    ) -> schema.RequestPermissionResponse:
        """Wait for a decision; without a running prompt the permission is refused."""
        decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        request = PermissionRequest(
            title=tool_call.title or "something",
            kind=tool_call.kind or "other",
            given=_read_json(tool_call.raw_input),
            decided=decided,
        )
        if not self._connection.pass_on(session_id, request):
            return _answer(None)
        await asyncio.wait([decided])
        return _answer(None if decided.cancelled() else _choice(options, allowed=decided.result()))


def _choice(options: list[Any], *, allowed: bool) -> str | None:
    """Return the option that decides only this request, or the nearest to it."""
    wanted = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
    by_kind = {option.kind: option.option_id for option in reversed(options)}
    return next((by_kind[kind] for kind in wanted if kind in by_kind), None)


def _answer(option: str | None) -> schema.RequestPermissionResponse:
    outcome: Any = schema.DeniedOutcome(outcome="cancelled")
    if option is not None:
        outcome = schema.AllowedOutcome(outcome="selected", option_id=option)
    return schema.RequestPermissionResponse(outcome=outcome)


def reason_of(error: Any, name: str) -> str:
    """Return why the program refused, for a person."""
    if error.code == AUTH_REQUIRED:
        return f"{name!r} wants you to sign in first: start it once in a terminal, or give it its key."
    details = error.data.get("details") if isinstance(error.data, dict) else None
    return f"{name!r} could not answer: {one_line(str(details or error), QUOTED_MAX)}"


def _read_event(update: Any) -> ProgramEvent | None:
    """Return the event of a session update; None for an update that is not shown."""
    match update:
        case schema.AgentMessageChunk(content=schema.TextContentBlock(text=text)):
            return TextChunk(text=text)
        case schema.AgentThoughtChunk(content=schema.TextContentBlock(text=text)):
            return TextChunk(text=text, is_thought=True)
        case schema.ToolCallStart() | schema.ToolCallProgress():
            return ToolUpdate(
                call_id=update.tool_call_id,
                title=update.title,
                kind=update.kind,
                given=_read_json(update.raw_input),
                output=_output(update),
                has_failed=update.status == "failed",
                is_done=update.status in ("completed", "failed"),
            )
        case _:
            return None


def _output(update: Any) -> JsonValue:
    """Return the result of a tool: its texts, else its raw output."""
    texts: list[str] = []
    changed: list[str] = []
    for item in update.content or ():
        match item:
            case schema.ContentToolCallContent(content=schema.TextContentBlock(text=text)):
                texts.append(text)
            case schema.FileEditToolCallContent(path=path):
                changed.append(f"changed {path}")
            case _:
                pass
    texts += changed
    return "\n".join(texts) if texts else _read_json(update.raw_output)


def _read_json(value: object) -> JsonValue:
    """Return a value of the program as JSON, or its text if it is not JSON."""
    try:
        check_json(value, where="the program's value")
    except InvalidValue:
        return str(value)
    return value  # type: ignore[return-value]  # Just checked.
