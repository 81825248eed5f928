"""What a store must offer to be measured.

Every method is a coroutine so that one loop can time them all; a synchronous store never awaits in it, which costs
less than a microsecond. What a store cannot do raises ``NotOffered``, and the table shows a dash.
"""
# ruff: noqa: ARG002, B027 - the optional methods below are defaults: "does nothing", "not offered"

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

Message = dict[str, Any]

Order = Literal["newest", "best"]

GUEST = "guest"
"""How the names of sessions begin that belong to a second person, where a store knows persons at all."""


class NotOffered(Exception):
    """The store has no such operation."""


class Contender(ABC):
    """One store, opened on a folder of its own."""

    appenders: ClassVar[Literal["tasks", "threads"]] = "threads"
    """What a program with many appenders runs on this store: tasks of one loop, or threads."""

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """What is measured: its version, and how a write is made durable."""

    @abstractmethod
    async def open(self, root: Path) -> None:
        """Open the store in the folder *root*, or make an empty one there."""

    @abstractmethod
    async def close(self) -> None:
        """Close the store so that another process can open it."""

    @abstractmethod
    async def append(self, session: str, message: Message) -> None:
        """Append one message; it is on disk when this returns."""

    @abstractmethod
    async def load_all(self, session: str) -> int:
        """Read a whole transcript, every text made ready to show; return how many messages it has."""

    async def create(self, session: str) -> None:
        """Make an empty session."""
        raise NotOffered

    async def populate(self, batch: Mapping[str, Sequence[Message]]) -> None:
        """Fill new sessions by the fastest way the store has; never timed. Messages say when they were sent."""
        raise NotOffered

    async def settle(self) -> None:
        """Bring what populating left undone to an end: indexes merged, log written back."""

    async def catch_up(self) -> None:
        """Wait for the work that earlier appends still cause in the background."""

    async def load_last(self, session: str, count: int) -> int:
        """Read the newest *count* messages; return how many came."""
        raise NotOffered

    async def load_conversation(self, session: str) -> int:
        """Read a whole transcript in the form a model is given; return how many messages it has."""
        raise NotOffered

    async def list_newest(self, count: int) -> int:
        """Read the sessions last active, with preview and counts; return how many came."""
        raise NotOffered

    async def search(self, query: str, *, order: Order, session: str | None, guest: bool) -> int:
        """Find up to twenty messages, in *session* or anywhere; return how many came.

        With *guest* the second person asks, who sees only what was said to them.
        """
        raise NotOffered

    async def find(
        self, query: str, *, order: Order, session: str | None, guest: bool
    ) -> list[tuple[str, int]]:
        """Do what ``search`` does and return session and number of each hit; never timed."""
        raise NotOffered

    async def populate_chats(self, count: int) -> None:
        """Make *count* chats that have spoken before; never timed."""
        raise NotOffered

    async def route(self, chat: int) -> None:
        """Find out which session a message from *chat* belongs to, and record that it came."""
        raise NotOffered


def default_durability(file: Path) -> str:
    """Say how SQLite commits to *file* where a store leaves the sync setting as the library has it."""
    connection = sqlite3.connect(file)
    try:
        ((journal,), (sync,)) = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "synchronous")
        )
    finally:
        connection.close()
    return f"{journal}, synchronous={sync}"
