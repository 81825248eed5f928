"""The OpenAI Agents SDK's ``SQLiteSession``: one session object per conversation, one file for all."""

import importlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.contenders.contract import Contender, Message, default_durability


class OpenAIAgents(Contender):
    """Session objects are kept, as an application with live conversations would."""

    appenders = "tasks"

    def __init__(self) -> None:
        self._memory = importlib.import_module("agents")
        self._root = Path()
        self._sessions: dict[str, Any] = {}

    def facts(self) -> Mapping[str, str]:
        return {
            "version": importlib.metadata.version("openai-agents"),
            "durable": default_durability(self._root / "sessions.db"),
        }

    async def open(self, root: Path) -> None:
        self._root = root
        self._find("first")  # makes the file

    async def close(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    async def create(self, session: str) -> None:
        self._find(session)

    async def populate(self, batch: Mapping[str, Sequence[Message]]) -> None:
        for session, messages in batch.items():
            await self._find(session).add_items([_item(message) for message in messages])

    async def append(self, session: str, message: Message) -> None:
        await self._find(session).add_items([_item(message)])

    async def load_all(self, session: str) -> int:
        return len(await self._find(session).get_items())

    async def load_last(self, session: str, count: int) -> int:
        return len(await self._find(session).get_items(count))

    def _find(self, session: str) -> Any:
        if session not in self._sessions:
            self._sessions[session] = self._memory.SQLiteSession(session, self._root / "sessions.db")
        return self._sessions[session]


def _item(message: Message) -> Message:
    if message["role"] == "tool":
        return {
            "type": "function_call_output",
            "call_id": message["tool_call_id"],
            "output": message["content"],
        }
    if calls := message.get("tool_calls"):
        call: Message = {"type": "function_call", "call_id": calls[0]["id"], "content": message["content"]}
        call.update(calls[0]["function"])
        return call
    return {"role": message["role"], "content": message["content"]}


def make() -> Contender:
    """Return the contender."""
    return OpenAIAgents()
