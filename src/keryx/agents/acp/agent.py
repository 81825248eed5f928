"""The ACP agent: a program that speaks the Agent Client Protocol answers, and runs its own tools.

Keryx's transcript is the truth. The messages themselves name the program's session that continues them, so this holds
over restarts and branches. If the program cannot continue from exactly there, it is sent the conversation as text. The
tools that it ran are stored as calls with their results, and never run by Keryx. A permission that it requests is an
approval like any other: the turn waits in the store, and the waiting program is only a shortcut (decision 19).
"""

import asyncio
import hashlib
import importlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from keryx.agents.acp.contract import (
    PermissionRequest,
    PromptEnd,
    PromptImage,
    TextChunk,
    ToolReports,
    ToolUpdate,
)
from keryx.agents.acp.history import (
    PermissionAnswer,
    find_permission,
    find_position,
    key_of,
    mark_of,
    new_messages,
    prompt_text,
    split_at_answer,
)
from keryx.agents.acp.sessions import ProgramSession, ProgramSessions
from keryx.agents.acp.turn import AcpTurn, arguments_of
from keryx.agents.agent import NO_ANSWER, SILENT_PURPOSES, Answer, Brief, ModelUse, ReadMedia, Stage, no_media
from keryx.agents.briefing import spoken
from keryx.core.context.rules.prompt import context_block
from keryx.core.conversations.rules.message import MediaPart, Message, NewMessage, ToolCallPart
from keryx.core.turns.rules.program_calls import PERMISSION
from keryx.errors import AgentFailed
from keryx.subprocesses.start_program import ProgramSettings

if TYPE_CHECKING:
    from keryx.agents.acp.client import AcpConnection

SESSIONS_MAX: Final = 500


class AcpAgent:
    """Answers with an ACP program: one process for all conversations, started by the first turn."""

    def __init__(
        self,
        settings: ProgramSettings,
        *,
        errors: Path,
        reports: ToolReports,
        read_media: ReadMedia = no_media,
        sessions_max: int = SESSIONS_MAX,
    ) -> None:
        self._settings = settings
        self._errors = errors
        self._reports = reports
        self._read_media = read_media
        self._program = hashlib.sha256("\0".join(settings.command).encode()).hexdigest()[:16]
        self._connection: AcpConnection | None = None
        self._starting = asyncio.Lock()
        self._sessions = ProgramSessions(sessions_max=sessions_max, cancel_seconds=settings.cancel_seconds)

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        """Answer one turn, or raise ``AgentFailed``."""
        if brief.purpose in SILENT_PURPOSES:
            return NO_ANSWER
        connection = await self._connected()
        await stage.note_model(ModelUse(model=f"acp:{connection.name}"))
        session, text = await self._resume(brief, connection)
        turn = AcpTurn(
            brief=brief,
            stage=stage,
            reports=self._reports,
            mark=mark_of(self._program, session.id),
            used=session.used,
        )
        try:
            if text is not None:
                await self._ask(session, brief, text)
            return Answer(message=await self._listen(session, turn))
        except BaseException as error:
            # If the program waits for a permission, the turn waits with it.
            if session.waiting_for is None or isinstance(error, asyncio.CancelledError):
                self._sessions.cancel(brief.session_id, session)
            raise

    async def warm_up(self) -> None:
        """Start the program; the first turn reports a failure."""
        with suppress(AgentFailed):
            await self._connected()

    async def close(self) -> None:
        """End the program."""
        async with self._starting:
            connection, self._connection = self._connection, None
            if connection is not None:
                await connection.close()
        await self._sessions.close()

    async def _connected(self) -> "AcpConnection":
        """Return the connection to the program, and start the program if it does not run."""
        async with self._starting:
            if self._connection is not None and self._connection.is_gone:
                gone, self._connection = self._connection, None
                await gone.close()
            if self._connection is None:
                module = await asyncio.to_thread(importlib.import_module, "keryx.agents.acp.client")
                self._connection = await module.connect(self._settings, self._errors)
            assert self._connection is not None
            return self._connection

    async def _resume(self, brief: Brief, connection: "AcpConnection") -> tuple[ProgramSession, str | None]:
        """Return the session that continues the conversation, and the text to send; None if its prompt goes on."""
        position = find_position(brief.messages, program=self._program)
        past, since = split_at_answer(brief.messages) if position is None else ((), position.since)
        session = await self._sessions.find(brief.session_id)
        if session is not None and (
            position is None or session.id != position.session or session.connection is not connection
        ):
            self._sessions.cancel(brief.session_id, session)
            session = None
        if session is None:
            folder = brief.context.workspace or str(self._settings.folder)
            if position is not None and await connection.load(position.session, folder):
                session = ProgramSession(connection=connection, id=position.session, known_seq=position.seq)
            else:
                session = ProgramSession(connection=connection, id=await connection.open(folder))
                past, since = split_at_answer(brief.messages)
        self._sessions.keep(brief.session_id, session)
        permission = find_permission(brief.messages, since)
        news = new_messages(since, known_seq=session.known_seq)
        if session.waiting_for is not None and await self._continue_prompt(
            session, permission, is_alone=not news
        ):
            return session, None
        session.allowed = permission.key if permission is not None and permission.is_given else None
        # The text of a prompt that was lost is sent again.
        return session, prompt_text(brief, news or new_messages(since, known_seq=0), permission, past)

    async def _continue_prompt(
        self, session: ProgramSession, permission: PermissionAnswer | None, *, is_alone: bool
    ) -> bool:
        """Give the waiting program a person's decision; return whether it waited for that and for nothing else."""
        assert session.waiting_for is not None
        (call_id, request), session.waiting_for = session.waiting_for, None
        is_running = session.prompt is not None and not session.prompt.is_over
        if permission is not None and permission.call_id == call_id and is_alone and is_running:
            request.answer(allowed=permission.is_given)
            return True
        await session.end_prompt(seconds=self._settings.cancel_seconds)
        return False

    async def _ask(self, session: ProgramSession, brief: Brief, text: str) -> None:
        context = context_block(brief.context)
        if context != session.context:
            text, session.context = f"{context}\n{text}", context
        images = await self._images(session, brief)
        session.used.clear()
        session.prompt = session.connection.ask(session.id, text, images)
        session.known_seq = max((m.seq for m in brief.messages if isinstance(m, Message)), default=0)

    async def _listen(self, session: ProgramSession, turn: AcpTurn) -> NewMessage:
        """Show and store what the program writes and runs, until its prompt ends."""
        while True:
            assert session.prompt is not None
            event = await session.prompt.next()
            match event:
                case TextChunk():
                    await turn.show(event)
                case ToolUpdate():
                    await turn.use(event)
                case PermissionRequest():
                    await self._request(event, session, turn)
                case PromptEnd():
                    await turn.store_unfinished()
                    if event.has_failed or not turn.later:
                        return turn.answer(event)
                    later, turn.later = turn.later, []
                    await turn.separate()
                    said = [spoken(each, is_group=turn.brief.is_group) for each in later]
                    await self._ask(session, turn.brief, "\n\n".join(said))

    async def _request(self, request: PermissionRequest, session: ProgramSession, turn: AcpTurn) -> None:
        """Ask a person, unless the permission was given before; usually the turn ends here and the program waits."""
        if session.allowed == key_of(request.title, request.kind, request.given):
            session.allowed = None
            request.answer(allowed=True)
            return
        call = ToolCallPart(
            call_id=turn.fresh_id("permission"),
            name=PERMISSION,
            arguments={"kind": request.kind, **arguments_of(request.title, request.given)},
        )
        session.waiting_for = call.call_id, request
        done = await turn.step(call)
        session.waiting_for = None
        request.answer(allowed=not any(result.is_error for result in done.results))

    async def _images(self, session: ProgramSession, brief: Brief) -> list[PromptImage]:
        """Return the images of the new messages, if the program takes images."""
        shown = [
            (part.blob, part.media_type)
            for message in new_messages(brief.messages, known_seq=session.known_seq)
            for part in message.parts
            if isinstance(part, MediaPart) and part.blob and part.media_type.startswith("image/")
        ]
        if not shown or not session.connection.takes_images:
            return []
        contents = await self._read_media([blob for blob, _ in shown])
        return [
            PromptImage(media_type=kind, content=contents[blob]) for blob, kind in shown if blob in contents
        ]
