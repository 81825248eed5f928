"""The raw limit: Keryx's own statements on a bare apsw connection, in one thread, with the same durability.

Runs on a copy of a store that Keryx filled. Nothing stands between the statements and the file: no thread to hand over
to, no checks, no index, and rows are not made into values. The log is written back in line, as SQLite does by itself.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apsw

from bench.contenders.contract import Contender, Message
from keryx.store.sqlite_files import LOG_BYTES_MAX
from keryx.store.statements import load

SEQ_MAX = 2**62
NO_TOKENS = {
    "input_tokens": 0,
    "cached_tokens": 0,
    "output_tokens": 0,
    "thinking_tokens": 0,
    "cost_micros": 0,
}

OPTIONS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "wal_autocheckpoint=1000",
    "foreign_keys=ON",
    "trusted_schema=OFF",
    "temp_store=MEMORY",
    "cache_size=-16000",
    f"journal_size_limit={LOG_BYTES_MAX}",
)
"""Those of Keryx's own connections, but for the checkpoint: there is no other thread to write the log back."""


class Raw(Contender):
    """One connection, prepared statements, ``BEGIN IMMEDIATE`` and ``COMMIT`` around each append."""

    def __init__(self) -> None:
        self._sql = {name: statement.sql for name, statement in load("sqlite").items()}
        self._connection: apsw.Connection
        self._names: dict[str, str] = {}
        self._owner = 0

    def facts(self) -> Mapping[str, str]:
        journal, sync = self._connection.pragma("journal_mode"), self._connection.pragma("synchronous")
        return {"version": f"SQLite {apsw.sqlite_lib_version()}", "durable": f"{journal}, synchronous={sync}"}

    async def open(self, root: Path) -> None:
        self._names = json.loads((root / "names.json").read_text(encoding="utf-8"))
        self._connection = apsw.Connection(str(root / "keryx.db"))
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        for pragma in OPTIONS:
            self._connection.execute(f"PRAGMA {pragma}").fetchall()
        (self._owner,) = self._one("SELECT id FROM people WHERE role = 'owner'", {})

    async def close(self) -> None:
        self._connection.close()

    async def append(self, session: str, message: Message) -> None:
        now = time.time_ns() // 1_000
        session_id = self._names[session]
        calls = len(message.get("tool_calls", ()))
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        seq, number, branch = self._one(
            self._sql["sessions.append"],
            NO_TOKENS
            | {"session_id": session_id, "person_id": self._owner, "tool_call_count": calls, "active_at": now}
            | {"preview": message["content"][:60], "title": None, "holder": None, "epoch": None}
            | {"lease_now": now, "boot_id": ""},
        )
        (message_id,) = self._one(
            self._sql["messages.add"],
            NO_TOKENS
            | {"session_id": session_id, "branch_no": branch, "seq": seq, "role": message["role"]}
            | {"parts": _parts(message), "tool_call_count": calls, "created_at": now}
            | {"author": None, "author_id": None, "turn_id": None, "finish_reason": None},
        )
        run(
            self._sql["feed.add"],
            {
                "session_id": session_id,
                "number": number,
                "kind": "message",
                "subject": message_id,
                "now": now,
            },
        ).fetchall()
        run("COMMIT")

    async def load_last(self, session: str, count: int) -> int:
        bounds = {"branch_no": 0, "first_seq": 1, "last_seq": SEQ_MAX, "limit": count}
        rows = self._connection.execute(
            self._sql["messages.list_last"], bounds | {"session_id": self._names[session]}
        )
        return len(rows.fetchall())

    async def load_all(self, session: str) -> int:
        bounds = {"branch_no": 0, "first_seq": 1, "last_seq": SEQ_MAX}
        rows = self._connection.execute(
            self._sql["messages.list_range"], bounds | {"session_id": self._names[session]}
        )
        return len(rows.fetchall())

    async def list_newest(self, count: int) -> int:
        (audience,) = self._one("SELECT audience_id FROM sessions LIMIT 1", {})
        top = {"pinned": 0, "last_active_at": SEQ_MAX, "id": "", "empty_listed": 0, "now": 0}
        rows = self._connection.execute(
            self._sql["session_list.walk"], top | {"audience_id": audience, "limit": count}
        )
        return len(rows.fetchall())

    def _one(self, sql: str, parameters: dict[str, Any]) -> tuple[Any, ...]:
        """Return the only row of a statement, exhausted: an open cursor would keep the transaction open."""
        (row,) = self._connection.execute(sql, parameters).fetchall()
        return row


def _parts(message: Message) -> str:
    """The message as Keryx stores it, without its checks."""
    parts: Any = message["content"]
    if message["role"] == "tool":
        parts = [{"t": "result", "id": message["tool_call_id"], "name": message["tool_name"], "out": parts}]
    elif calls := message.get("tool_calls"):
        functions = [(call["id"], call["function"]) for call in calls]
        objects = [
            {"t": "call", "id": key, "name": f["name"], "args": f["arguments"]} for key, f in functions
        ]
        parts = [parts, *objects]
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def make() -> Contender:
    """Return the contender."""
    return Raw()
