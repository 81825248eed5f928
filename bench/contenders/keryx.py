"""Keryx itself, by the calls of its library; routing by the transaction its gateway runs.

Session ids are Keryx's own, so the names the benchmark uses are kept beside the store, for the next process and for
the raw contender.
"""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

import apsw

from bench.contenders.contract import GUEST, Contender, Message, Order
from keryx import __version__
from keryx.clock import SECOND, Micros, SystemClock
from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.core.conversations.rules.message import NewMessage
from keryx.core.conversations.rules.part import TextPart
from keryx.core.conversations.rules.source import Source
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.core.search.views.search import SearchResult
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.transactions.accept_message import accept_message
from keryx.ids import Ids
from keryx.library.client import Keryx
from keryx.library.messages import new_message
from keryx.library.open import open as open_keryx

TOGETHER = 500
"""How many messages or chats are written at once while a store is filled."""
GUEST_FILE = "guest.txt"
"""Beside the store: the id of the second person."""


class NumberedIds(Ids):
    """Ids for sessions that are filled: digits only, so that no query for a word finds a session by its id."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self._numbers = count(first)

    def session_id(self, now: Micros) -> str:
        """Return an id of the usual form with a running number in it."""
        return f"{super().session_id(now)[:-8]}{next(self._numbers):08d}"


class FillingClock(SystemClock):
    """The machine's clock, but while a store is filled the time at which its conversations were held."""

    def __init__(self) -> None:
        super().__init__()
        self.filling_at: Micros | None = None

    def now(self) -> Micros:
        """Wall time in microseconds UTC."""
        return super().now() if self.filling_at is None else self.filling_at


class KeryxStore(Contender):
    """One open library; appenders are tasks."""

    appenders = "tasks"

    def __init__(self) -> None:
        self._exits = AsyncExitStack()
        self._clock = FillingClock()
        self._keryx: Keryx
        self._filling: Keryx
        self._guest: Keryx | None = None
        self._root = Path()
        self._names: dict[str, str] = {}
        self._references = count()
        self._settings = Settings()
        self._ids = Ids()

    def facts(self) -> Mapping[str, str]:
        version = f"{__version__} on SQLite {apsw.sqlite_lib_version()}"
        writer = self._keryx._database._write_connection  # type: ignore[attr-defined]  # noqa: SLF001 - asked, not assumed
        return {
            "version": version,
            "durable": f"{writer.pragma('journal_mode')}, synchronous={writer.pragma('synchronous')}",
        }

    async def open(self, root: Path) -> None:
        self._root = root
        self._names = _read_names(root)
        self._keryx = await self._exits.enter_async_context(open_keryx(self.address(root), clock=self._clock))
        self._filling = self._acting_for(self._keryx.person, NumberedIds(len(self._names)))
        if (root / GUEST_FILE).exists():
            await self._let_guest_in(int((root / GUEST_FILE).read_text(encoding="ascii")))

    def address(self, root: Path) -> str | Path:
        """Return where the store of the folder *root* is."""
        return root / "keryx.db"

    async def close(self) -> None:
        await self._exits.aclose()
        _write_names(self._root, self._names)

    async def create(self, session: str) -> None:
        self._names[session] = (await self._keryx.create_session(title=session)).id

    async def populate(self, batch: Mapping[str, Sequence[Message]]) -> None:
        if self._guest is None and any(session.startswith(GUEST) for session in batch):
            await self._let_guest_in(None)
        # Sessions begin when their first messages were sent, as they do in life.
        self._clock.filling_at = min(each["timestamp"] for said in batch.values() for each in said) * SECOND
        await asyncio.gather(*(self._create_filled(session) for session in batch))
        await asyncio.gather(*(self._append_all(session, messages) for session, messages in batch.items()))
        self._clock.filling_at = None

    async def _create_filled(self, session: str) -> None:
        self._names[session] = (await self._whose(session).create_session()).id

    async def _append_all(self, session: str, messages: Sequence[Message]) -> None:
        for start in range(0, len(messages), TOGETHER):
            chunk = [_new_message(message) for message in messages[start : start + TOGETHER]]
            await self._whose(session).append_all(self._names[session], chunk)

    def _whose(self, session: str) -> Keryx:
        return self._guest if self._guest is not None and session.startswith(GUEST) else self._filling

    async def _let_guest_in(self, person_id: int | None) -> None:
        """Make the second person, or meet them again."""
        database = self._keryx._database  # noqa: SLF001 - who is let in is the gateway's to say, as below
        person = await database.write(
            lambda tx: (
                people.add_person(tx, name="Guest", role="member")
                if person_id is None
                else people.get_person(tx, person_id)
            )
        )
        (self._root / GUEST_FILE).write_text(str(person.id), encoding="ascii")
        self._guest = self._acting_for(person, NumberedIds(10_000_000))

    def _acting_for(self, person: Person, ids: Ids) -> Keryx:
        """Return what ``keryx.open(person=…)`` gives, on the store that is open already."""
        mine = self._keryx
        return Keryx(mine._database, person, ids=ids, indexer=mine._indexer, settings=Settings())  # noqa: SLF001

    async def settle(self) -> None:
        await self.catch_up()

    async def catch_up(self) -> None:
        await self._keryx.wait_indexed()

    async def append(self, session: str, message: Message) -> None:
        if message["role"] == "tool":
            call_id, name = message["tool_call_id"], message["tool_name"]
            await self._keryx.append(
                self._names[session],
                role="tool",
                text=message["content"],
                tool_call_id=call_id,
                tool_name=name,
            )
            return
        await self._keryx.append(
            self._names[session],
            role=message["role"],
            text=message["content"],
            tool_calls=message.get("tool_calls", ()),
        )

    async def load_all(self, session: str) -> int:
        # Parts are decoded when they are looked at, so they are.
        return len(
            [message.text for message in await self._keryx.transcript(self._names[session], last=None)]
        )

    async def load_conversation(self, session: str) -> int:
        return len(await self._keryx.conversation(self._names[session]))

    async def load_last(self, session: str, count: int) -> int:
        return len(await self._keryx.transcript(self._names[session], last=count))

    async def list_newest(self, count: int) -> int:
        return len((await self._keryx.list_sessions(limit=count)).rows)

    async def search(self, query: str, *, order: Order, session: str | None, guest: bool) -> int:
        found = await self._search(query, order=order, session=session, guest=guest)
        return sum(len(group.hits) for group in found.sessions)

    async def find(
        self, query: str, *, order: Order, session: str | None, guest: bool
    ) -> list[tuple[str, int]]:
        found = await self._search(query, order=order, session=session, guest=guest)
        names = {session_id: name for name, session_id in self._names.items()}
        return [(names[group.session_id], hit.seq) for group in found.sessions for hit in group.hits]

    async def _search(self, query: str, *, order: Order, session: str | None, guest: bool) -> SearchResult:
        asker = self._keryx
        if guest:
            assert self._guest is not None, "this store was filled without a second person"
            asker = self._guest
        session_id = None if session is None else self._names[session]
        return await asker.search(query, limit=20, order=order, session_id=session_id)

    async def populate_chats(self, count: int) -> None:
        for start in range(0, count, TOGETHER):
            await asyncio.gather(*(self.route(chat) for chat in range(start, min(start + TOGETHER, count))))
        await self.catch_up()

    async def route(self, chat: int) -> None:
        source = Source(platform="web", chat_id=str(chat), chat_type="dm", chat_name=f"Chat {chat}")
        reference = f"{os.getpid()}-{next(self._references)}"
        inbound = Inbound(source=source, ref=reference, parts=(TextPart(text="What is new?"),))
        database = self._keryx._database  # noqa: SLF001 - intake is the gateway's, which is not written yet
        await database.write(
            lambda tx: accept_message(tx, inbound, settings=self._settings, ids=self._ids, commands=COMMANDS)
        )


def _new_message(message: Message) -> NewMessage:
    text, calls, sent_at = message["content"], message.get("tool_calls", ()), message["timestamp"] * SECOND
    if message["role"] == "tool":
        call_id, name = message["tool_call_id"], message["tool_name"]
        return new_message("tool", text, tool_call_id=call_id, tool_name=name, created_at=sent_at)
    return new_message(message["role"], text, tool_calls=calls, created_at=sent_at)


def _read_names(root: Path) -> dict[str, str]:
    file = root / "names.json"
    names: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return names


def _write_names(root: Path, names: Mapping[str, str]) -> None:
    (root / "names.json").write_text(json.dumps(names), encoding="utf-8")


def make() -> Contender:
    """Return the contender."""
    return KeryxStore()
