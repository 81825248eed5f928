"""Hermes Agent's ``SessionDB`` and, for routing, its gateway's ``SessionStore``.

Stores are filled by the function its own import uses, with the database's sync off; every timed call is public and runs
with the settings it ships with. Its private names are used for filling only.
"""
# ruff: noqa: SLF001

import importlib
import importlib.metadata
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.contenders.contract import Contender, Message, NotOffered, Order

FILLING = ("synchronous=OFF", "cache_size=-262144", "wal_autocheckpoint=65536")
"""For the process that fills a store, which is never the one that is timed."""


class Hermes(Contender):
    """One ``SessionDB`` shared by all threads, as in its gateway."""

    def __init__(self) -> None:
        self._state: Any = importlib.import_module("hermes_state")
        self._db: Any = None
        self._root = Path()
        self._router: Any = None

    def facts(self) -> Mapping[str, str]:
        sync = self._db._conn.execute("PRAGMA synchronous").fetchone()[0]
        journal = self._db._conn.execute("PRAGMA journal_mode").fetchone()[0]
        return {
            "version": importlib.metadata.version("hermes-agent"),
            "durable": f"{journal}, synchronous={sync}",
        }

    async def open(self, root: Path) -> None:
        self._root = root
        os.environ["HERMES_HOME"] = str(root)
        self._db = self._state.SessionDB(root / "state.db")

    async def close(self) -> None:
        self._db.close()

    async def create(self, session: str) -> None:
        self._db.create_session(session, "cli", model="m")

    async def populate(self, batch: Mapping[str, Sequence[Message]]) -> None:
        connection = self._db._conn
        for setting in FILLING:
            connection.execute(f"PRAGMA {setting}").fetchall()
        connection.execute("BEGIN IMMEDIATE")
        for session, messages in batch.items():
            connection.execute(
                "INSERT INTO sessions(id, source, model, started_at) VALUES (?, 'cli', 'm', ?)",
                (session, time.time()),
            )
            self._db._insert_message_rows(connection, session, messages)
            connection.execute("UPDATE sessions SET message_count = ? WHERE id = ?", (len(messages), session))
        connection.execute("COMMIT")

    async def settle(self) -> None:
        self._db.optimize_fts()
        self._db._conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db._conn.execute("PRAGMA synchronous=FULL")

    async def append(self, session: str, message: Message) -> None:
        self._db.append_message(
            session,
            message["role"],
            message["content"],
            tool_name=message.get("tool_name"),
            tool_calls=message.get("tool_calls"),
            tool_call_id=message.get("tool_call_id"),
        )

    async def load_all(self, session: str) -> int:
        return len([message["content"] for message in self._db.get_messages(session)])

    async def load_conversation(self, session: str) -> int:
        return len(self._db.get_messages_as_conversation(session))

    async def load_last(self, session: str, count: int) -> int:
        held = self._db.get_session(session)["message_count"]
        return len(self._db.get_messages(session, limit=count, offset=held - count))

    async def list_newest(self, count: int) -> int:
        return len(self._db.list_sessions_rich(limit=count, order_by_last_active=True, compact_rows=True))

    async def search(self, query: str, *, order: Order, session: str | None, guest: bool) -> int:
        if session is not None or guest:
            raise NotOffered
        return len(self._db.search_messages(query, limit=20, sort="newest" if order == "newest" else None))

    async def populate_chats(self, count: int) -> None:
        router = self._routing()
        persist = router._persist_routing_data
        # It rewrites its whole index for every chat; once at the end leaves the same state.
        router._persist_routing_data = lambda *_: None
        for chat in range(count):
            await self.route(chat)
        router._persist_routing_data = persist
        with router._lock:
            router._save()

    async def route(self, chat: int) -> None:
        router = self._routing()
        source = self._session.SessionSource(
            platform=self._config.Platform.TELEGRAM,
            chat_id=str(chat),
            user_id=str(chat),
            chat_name=f"Chat {chat}",
        )
        router.get_or_create_session(source)

    def _routing(self) -> Any:
        if self._router is None:
            self._state.DEFAULT_DB_PATH = self._root / "state.db"
            self._config = importlib.import_module("gateway.config")
            self._session = importlib.import_module("gateway.session")
            self._router = self._session.SessionStore(self._root / "sessions", self._config.GatewayConfig())
        return self._router


def make() -> Contender:
    """Return the contender."""
    return Hermes()
