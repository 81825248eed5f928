"""The sessions of an ACP program that continue conversations, the newest of them, kept while the program runs."""

import asyncio
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

from keryx.agents.acp.contract import PermissionRequest, ToolUpdate
from keryx.agents.acp.history import PermissionKey
from keryx.values import dataclass

if TYPE_CHECKING:
    from keryx.agents.acp.client import AcpConnection, AcpPrompt


@dataclass(slots=True, kw_only=True)
class ProgramSession:
    """A session of the program, which continues a conversation."""

    connection: "AcpConnection"
    id: str
    context: str = ""
    """The context block that it was sent last."""
    known_seq: int = 0
    """The last message that it was sent."""
    prompt: "AcpPrompt | None" = None
    used: dict[str, ToolUpdate] = field(default_factory=dict)
    waiting_for: tuple[str, PermissionRequest] | None = None
    """The permission that it waits for, and the call that asks a person."""
    allowed: PermissionKey | None = None
    """A permission that a person gave after it had stopped waiting; it is not asked again."""
    ending: "asyncio.Task[None] | None" = None

    async def end_prompt(self, *, seconds: float) -> bool:
        """End the prompt and return whether it ended in time; if not, the session must not be used again."""
        prompt, self.prompt = self.prompt, None
        if prompt is None:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await prompt.cancel()
                return True
        return False


class ProgramSessions:
    """The program's sessions by conversation; the oldest of too many is dropped."""

    def __init__(self, *, sessions_max: int, cancel_seconds: float) -> None:
        self._sessions_max = sessions_max
        self._cancel_seconds = cancel_seconds
        self._by_conversation: dict[str, ProgramSession] = {}

    async def find(self, session_id: str) -> ProgramSession | None:
        """Return the session of a conversation, after the end of a prompt that was cancelled."""
        session = self._by_conversation.get(session_id)
        if session is not None and session.ending is not None:
            await asyncio.shield(session.ending)
        return self._by_conversation.get(session_id)

    def keep(self, session_id: str, session: ProgramSession) -> None:
        """Keep the session of a conversation."""
        self._by_conversation.pop(session_id, None)
        self._by_conversation[session_id] = session
        for oldest in list(self._by_conversation)[: -self._sessions_max]:
            self.cancel(oldest, self._by_conversation.pop(oldest))

    def cancel(self, session_id: str, session: ProgramSession) -> None:
        """Ask the program to end the session's prompt, without waiting for the end."""
        session.waiting_for = None
        if session.prompt is None or session.prompt.is_over:
            return

        async def end() -> None:
            has_ended = await session.end_prompt(seconds=self._cancel_seconds)
            if not has_ended and self._by_conversation.get(session_id) is session:
                del self._by_conversation[session_id]

        session.ending = asyncio.create_task(end(), name="keryx-acp-cancel")

    async def close(self) -> None:
        """Wait for cancelled prompts and forget all sessions."""
        endings = [each.ending for each in self._by_conversation.values() if each.ending is not None]
        await asyncio.gather(*endings, return_exceptions=True)
        self._by_conversation.clear()
