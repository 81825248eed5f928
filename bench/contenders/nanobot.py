"""nanobot's ``SessionManager``: a file per session, rewritten by every save.

It does not sync by default. The measure is a durable append, so it is asked to (``fsync=True``, its own option).
"""

import importlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.contenders.contract import Contender, Message


class Nanobot(Contender):
    """One manager; the sessions it returns are cached by itself."""

    def __init__(self) -> None:
        importlib.import_module("loguru").logger.remove()
        self._module = importlib.import_module("nanobot.session")
        self._manager: Any = None

    def facts(self) -> Mapping[str, str]:
        return {
            "version": importlib.metadata.version("nanobot-ai"),
            "durable": "file rewritten and synced, fsync=True",
        }

    async def open(self, root: Path) -> None:
        workspace = root / "workspace"
        workspace.mkdir(parents=True, exist_ok=True)
        self._manager = self._module.SessionManager(workspace, sessions_root=root / "sessions")

    async def close(self) -> None:
        self._manager = None

    async def create(self, session: str) -> None:
        self._find(session)

    async def populate(self, batch: Mapping[str, Sequence[Message]]) -> None:
        for session, messages in batch.items():
            found = self._find(session)
            for message in messages:
                _add(found, message)
            self._manager.save(found)

    async def append(self, session: str, message: Message) -> None:
        found = self._find(session)
        _add(found, message)
        self._manager.save(found, fsync=True)

    async def load_all(self, session: str) -> int:
        # A manager without a cache: what a program pays that comes back to the session.
        self._manager.invalidate(_key(session))
        return len(self._find(session).messages)

    async def list_newest(self, count: int) -> int:
        return len(self._manager.list_sessions()[:count])

    def _find(self, session: str) -> Any:
        return self._manager.get_or_create(_key(session))


def _key(session: str) -> str:
    return f"cli:{session}"


def _add(found: Any, message: Message) -> None:
    extra: Message = {key: message[key] for key in ("tool_calls", "tool_call_id") if key in message}
    if "tool_name" in message:
        extra["name"] = message["tool_name"]
    found.add_message(message["role"], message["content"], **extra)


def make() -> Contender:
    """Return the contender."""
    return Nanobot()
