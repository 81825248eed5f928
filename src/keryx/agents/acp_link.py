"""Speaks the Agent Client Protocol with a program, by the protocol's own package.

Imported when the first turn needs it. Nothing raised here quotes what people said, and whatever the program sends that
cannot be read is passed over: it is somebody else's code.
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

from keryx.agents.acp_words import Event, Over, Picture, Spoke, Used, Wish
from keryx.agents.agent import AgentFailed
from keryx.agents.program import Program, ProgramSettings, open_errors, start_program
from keryx.domain.graphemes import one_line
from keryx.domain.json_value import JsonValue, check_json
from keryx.errors import InvalidValue

END_SECONDS: Final = 2.0
QUOTED_MAX: Final = 200
AUTH_REQUIRED: Final = -32000

_log = logging.getLogger("keryx.agents.acp")


async def connect(settings: ProgramSettings, errors: Path) -> "AcpLink":
    """Start the program and greet it; what it complains of is added to the file ``errors``."""
    with open_errors(errors) as file:
        program = await start_program(settings, errors=file)
    link = AcpLink(program, settings.name)
    try:
        async with asyncio.timeout(settings.start_seconds):
            await link.greet()
    except TimeoutError:
        await link.close()
        raise AgentFailed(
            f"the program {settings.name!r} did not greet in time; is it an ACP agent?"
        ) from None
    except BaseException:
        await link.close()
        raise
    return link


class AcpLink:
    """A program that is started."""

    def __init__(self, program: Program, name: str) -> None:
        self._program = program
        self.name = name
        self.takes_pictures = False
        self._can_load = False
        self._is_lost = False
        self._asking: dict[str, AcpAsking] = {}
        self._connection = acp.connect_to_agent(
            cast(Any, _Client(self)), program.stdin, program.stdout, use_unstable_protocol=True
        )
        self._watching = asyncio.create_task(self._watch(), name="keryx-acp")

    @property
    def is_gone(self) -> bool:
        """Whether the program has ended, or listens no more."""
        return self._is_lost or self._watching.done()

    async def _watch(self) -> None:
        code = await self._program.wait()
        _log.info("the agent program %s ended with code %s", self.name, code)

    async def greet(self) -> None:
        """Learn what the program can do."""
        said = await self._call(
            self._connection.initialize(
                protocol_version=acp.PROTOCOL_VERSION,
                client_capabilities=schema.ClientCapabilities(),
                client_info=schema.Implementation(name="keryx", version="1"),
            )
        )
        can = said.agent_capabilities
        self._can_load = bool(can and can.load_session)
        self.takes_pictures = bool(can and can.prompt_capabilities and can.prompt_capabilities.image)

    async def open(self, folder: str) -> str:
        """Begin a conversation of its own and return its id; raise ``AgentFailed`` where that fails."""
        opened = await self._call(self._connection.new_session(cwd=folder, mcp_servers=[]))
        return str(opened.session_id)

    async def load(self, session: str, folder: str) -> bool:
        """Take an earlier one up again, and say whether that worked; what it repeats of it, nobody hears."""
        if not self._can_load:
            return False
        try:
            await self._call(self._connection.load_session(cwd=folder, session_id=session, mcp_servers=[]))
        except AgentFailed:
            return False
        return True

    def ask(self, session: str, text: str, pictures: Sequence[Picture] = ()) -> "AcpAsking":
        """Say something in a conversation."""
        blocks: list[Any] = [acp.text_block(text)]
        blocks += [acp.image_block(b64encode(each.content).decode(), each.media_type) for each in pictures]
        asking = AcpAsking(self, self._connection, session, blocks)
        self._asking[session] = asking
        return asking

    async def close(self) -> None:
        """End the program."""
        with suppress(Exception):  # its end must not keep the program from being ended
            async with asyncio.timeout(END_SECONDS):
                await self._connection.close()
        await self._program.end(seconds=END_SECONDS)
        await self._watching

    def lose(self) -> None:
        """Know that the program listens no more, which is known before it is known to have ended."""
        self._is_lost = True

    def hear(self, session: str, event: Event) -> bool:
        """Hand on what came in a conversation; nobody listens to one in which nothing is asked."""
        asking = self._asking.get(session)
        if asking is None or asking.is_over:
            return False
        asking.hear(event)
        return True

    async def _call(self, request: Any) -> Any:
        try:
            return await request
        except acp.RequestError as error:
            raise AgentFailed(reason_of(error, self.name)) from error
        except (ConnectionError, RuntimeError) as error:
            self.lose()
            raise AgentFailed(f"the program {self.name!r} ended instead of answering.") from error


class AcpAsking:
    """A prompt under way."""

    def __init__(self, link: AcpLink, connection: Any, session: str, blocks: list[Any]) -> None:
        self._link = link
        self._connection = connection
        self._session = session
        self._name = link.name
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._wishes: list[Wish] = []
        self._task = asyncio.create_task(self._run(blocks), name="keryx-acp-prompt")

    @property
    def is_over(self) -> bool:
        """Whether it has ended, whatever of it was heard."""
        return self._task.done()

    def hear(self, event: Event) -> None:
        """Keep what came until somebody listens."""
        if isinstance(event, Wish):
            self._wishes.append(event)
        self._events.put_nowait(event)

    async def next(self) -> Event:
        """Return what came next; the last is an ``Over``."""
        return await self._events.get()

    async def cancel(self) -> None:
        """Ask the agent to end it, and return when it has; nothing it waits to be allowed is decided any more."""
        for wish in self._wishes:
            wish.decided.cancel()
        with suppress(ConnectionError, RuntimeError):
            await self._connection.cancel(session_id=self._session)
        await asyncio.shield(self._task)

    async def _run(self, blocks: list[Any]) -> None:
        try:
            ended = await self._connection.prompt(session_id=self._session, prompt=blocks)
        except acp.RequestError as error:
            self.hear(Over(reason=reason_of(error, self._name), has_failed=True))
        except (ConnectionError, RuntimeError):
            self._link.lose()
            self.hear(
                Over(reason=f"the program {self._name!r} ended in the middle.", has_failed=True, is_lost=True)
            )
        except ValueError:
            self.hear(Over(reason=f"{self._name!r} answered what cannot be read.", has_failed=True))
        else:
            used = ended.usage
            self.hear(
                Over(
                    reason=ended.stop_reason,
                    input_tokens=used.input_tokens if used else 0,
                    cached_tokens=(used.cached_read_tokens or 0) if used else 0,
                    output_tokens=used.output_tokens if used else 0,
                )
            )


class _Client:
    """What the program may ask of us: to hear what it says, and to be allowed something."""

    def __init__(self, link: AcpLink) -> None:
        self._link = link

    def on_connect(self, conn: Any) -> None:
        """Nothing is to be done."""

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        """Hear what it says; the first line of this runs in the order in which it came."""
        event = _event_of(update)
        if event is not None:
            self._link.hear(session_id, event)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_more: Any
    ) -> schema.RequestPermissionResponse:
        """Let somebody decide; where nobody listens, it is not allowed."""
        decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        wish = Wish(
            title=tool_call.title or "something",
            kind=tool_call.kind or "other",
            given=_json(tool_call.raw_input),
            decided=decided,
        )
        if not self._link.hear(session_id, wish):
            return _answer(None)
        await asyncio.wait([decided])
        return _answer(None if decided.cancelled() else _choice(options, allowed=decided.result()))


def _choice(options: list[Any], *, allowed: bool) -> str | None:
    """Return the option that decides just this once, or the nearest to it."""
    wanted = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
    by_kind = {option.kind: option.option_id for option in reversed(options)}
    return next((by_kind[kind] for kind in wanted if kind in by_kind), None)


def _answer(option: str | None) -> schema.RequestPermissionResponse:
    if option is None:
        return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
    return schema.RequestPermissionResponse(
        outcome=schema.AllowedOutcome(outcome="selected", option_id=option)
    )


def _event_of(update: Any) -> Event | None:
    match update:
        case schema.AgentMessageChunk(content=schema.TextContentBlock(text=text)):
            return Spoke(text=text)
        case schema.AgentThoughtChunk(content=schema.TextContentBlock(text=text)):
            return Spoke(text=text, is_thought=True)
        case schema.ToolCallStart() | schema.ToolCallProgress():
            return Used(
                call_id=update.tool_call_id,
                title=update.title,
                kind=update.kind,
                given=_json(update.raw_input),
                output=_output(update),
                has_failed=update.status == "failed",
                is_done=update.status in ("completed", "failed"),
            )
        case _:
            return None


def _output(update: Any) -> JsonValue:
    """Return what a tool gave: the text that is shown of it, else what it gave raw."""
    texts = [
        item.content.text
        for item in update.content or ()
        if isinstance(item, schema.ContentToolCallContent)
        and isinstance(item.content, schema.TextContentBlock)
    ]
    texts += [
        f"changed {item.path}"
        for item in update.content or ()
        if isinstance(item, schema.FileEditToolCallContent)
    ]
    return "\n".join(texts) if texts else _json(update.raw_output)


def _json(value: object) -> JsonValue:
    try:
        check_json(value, where="what the agent told")
    except InvalidValue:
        return str(value)
    return value  # type: ignore[return-value]  # Just checked.


def reason_of(error: Any, name: str) -> str:
    """Return why the program refused, for a person."""
    if error.code == AUTH_REQUIRED:
        return f"{name!r} wants you to sign in first: start it once in a terminal, or give it its key."
    details = error.data.get("details") if isinstance(error.data, dict) else None
    return f"{name!r} could not answer: {one_line(str(details or error), QUOTED_MAX)}"
