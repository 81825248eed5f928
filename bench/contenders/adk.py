"""Google ADK's ``DatabaseSessionService`` on SQLite through aiosqlite.

Its rows are made by its own ``StorageEvent`` when filling; every timed call is public.
"""
# ruff: noqa: SLF001

import importlib
import importlib.metadata
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.contenders.contract import Contender, Message, default_durability

APP = {"app_name": "bench", "user_id": "someone"}


class Adk(Contender):
    """One service for all sessions; session objects are kept, as its runner does during a turn."""

    appenders = "tasks"

    def __init__(self) -> None:
        self._sessions_module = importlib.import_module("google.adk.sessions")
        self._event = importlib.import_module("google.adk.events").Event
        self._types = importlib.import_module("google.genai.types")
        self._service: Any = None
        self._root = Path()
        self._sessions: dict[str, Any] = {}

    def facts(self) -> Mapping[str, str]:
        return {
            "version": importlib.metadata.version("google-adk"),
            "durable": default_durability(self._root / "sessions.db"),
        }

    async def open(self, root: Path) -> None:
        self._root = root
        self._service = self._sessions_module.DatabaseSessionService(
            f"sqlite+aiosqlite:///{root / 'sessions.db'}"
        )
        await self._service.prepare_tables()

    async def close(self) -> None:
        await self._service.close()

    async def create(self, session: str) -> None:
        self._sessions[session] = await self._service.create_session(**APP, session_id=session)

    async def populate(self, batch: Mapping[str, Sequence[Message]]) -> None:
        for session, messages in batch.items():
            await self.create(session)
            rows = self._service._get_schema_classes().StorageEvent
            earlier = time.time() - 10_000
            async with self._service._rollback_on_exception_session() as database:
                for number, message in enumerate(messages):
                    event = self._make_event(message)
                    event.id = f"{session}-{number}"
                    event.timestamp = earlier + number / 1000
                    database.add(rows.from_event(self._sessions[session], event))
                await database.commit()

    async def append(self, session: str, message: Message) -> None:
        await self._service.append_event(await self._find(session), self._make_event(message))

    async def load_all(self, session: str) -> int:
        return len((await self._service.get_session(**APP, session_id=session)).events)

    async def load_last(self, session: str, count: int) -> int:
        config = importlib.import_module("google.adk.sessions.base_session_service").GetSessionConfig
        found = await self._service.get_session(
            **APP, session_id=session, config=config(num_recent_events=count)
        )
        return len(found.events)

    async def list_newest(self, count: int) -> int:
        listed = await self._service.list_sessions(**APP)
        return len(listed.sessions[-count:])

    async def _find(self, session: str) -> Any:
        if session not in self._sessions:
            config = importlib.import_module("google.adk.sessions.base_session_service").GetSessionConfig
            self._sessions[session] = await self._service.get_session(
                **APP, session_id=session, config=config(num_recent_events=1)
            )
        return self._sessions[session]

    def _make_event(self, message: Message) -> Any:
        types = self._types
        if message["role"] == "tool":
            response = types.FunctionResponse(
                id=message["tool_call_id"], name=message["tool_name"], response=json.loads(message["content"])
            )
            parts = [types.Part(function_response=response)]
        else:
            parts = [types.Part(text=message["content"])]
        for call in message.get("tool_calls", ()):
            function = call["function"]
            arguments = json.loads(function["arguments"])
            call_part = types.FunctionCall(id=call["id"], name=function["name"], args=arguments)
            parts.append(types.Part(function_call=call_part))
        author = "user" if message["role"] == "user" else "agent"
        content = types.Content(role="user" if author == "user" else "model", parts=parts)
        return self._event(author=author, invocation_id="one", content=content)


def make() -> Contender:
    """Return the contender."""
    return Adk()
