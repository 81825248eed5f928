"""Stores for the gateway: empty ones, and ones with a long history, on both databases.

The history is made once, by the transactions the gateway itself runs, and kept under ``.bench/`` for the next run;
every measure works on a copy. PostgreSQL is given the same rows.
"""

import asyncio
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import apsw
import psycopg
from psycopg import sql

from bench.contenders.keryx import FillingClock
from bench.driver import WorkerError
from bench.gateway.doubles import ANSWER, PLATFORM, QUESTION, USER
from bench.gateway.load import Place, let_in
from keryx.clock import MINUTE
from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.core.accounts.transactions import Connector, take_connector
from keryx.core.conversations.rules.message import NewMessage, TextPart
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.delivery import Sent
from keryx.core.deliveries.transactions.claim_deliveries import claim_deliveries, record_delivery
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.transactions.accept_message import Accepted, accept_message
from keryx.core.turns.transactions.begin_turn import begin_turn
from keryx.core.turns.transactions.finish_turn import Reply, finish_turn
from keryx.errors import StoreUnavailable
from keryx.ids import Ids
from keryx.library.open import open as open_keryx
from keryx.store.database import Tx
from keryx.store.migrate import migrations
from keryx.store.opening import open_database
from keryx.store.sqlite_files import index_path
from keryx.testing.postgres import PrivateServer, find_programs

Kind = Literal["sqlite", "postgres"]
Target: TypeAlias = "psycopg.Connection[tuple[object, ...]]"

TOGETHER = 200
"""Conversations that are made in one commit while a store is filled."""
RECIPE = 1
"""To be raised when what is stored of a history changes, so that kept ones are made anew."""
SAY_EVERY = 10_000


def chat_name(number: int) -> str:
    """Return the chat of a conversation of the history."""
    return f"old-{number}"


class Stores:
    """The run's stores: each one asked for is new, in a folder of its own, and gone when the run is."""

    def __init__(self, folder: Path, exits: ExitStack) -> None:
        self._kept = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = Path(exits.enter_context(tempfile.TemporaryDirectory(dir=folder, prefix="run-")))
        self._exits = exits
        self._server: PrivateServer | None = None
        self._templates: dict[int, str] = {}

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The databases there can be on this machine."""
        try:
            find_programs()
        except StoreUnavailable:
            return ("sqlite",)
        return ("sqlite", "postgres")

    def make(self, kind: Kind, *, sessions: int = 0) -> Place:
        """Return a store with so many conversations in it that were held before."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        if kind == "postgres":
            return Place(folder=folder, database=self._make_postgres(sessions))
        if sessions:
            # The log was emptied when the store was closed: what is in the folder is all of it.
            shutil.copytree(self._history(sessions), folder, dirs_exist_ok=True)
        return Place(folder=folder, database=str(folder / "keryx.db"))

    def drop(self, place: Place) -> None:
        """Let go of a store before the run ends; the disk has better things to hold."""
        shutil.rmtree(place.folder)
        if self._server is not None and place.database.startswith("postgresql"):
            self._server.drop_database(place.database)

    def _history(self, sessions: int) -> Path:
        schema = migrations("sqlite")[-1].number
        kept = self._kept / f"history-{sessions}-schema{schema}-{RECIPE}"
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=self._kept, prefix="filling-") as filling:
                asyncio.run(fill(Path(filling) / "keryx.db", sessions=sessions))
                shutil.copytree(filling, kept)
        return kept

    def _make_postgres(self, sessions: int) -> str:
        if self._server is None:
            try:
                self._server = self._exits.enter_context(PrivateServer(durable=True))
            except StoreUnavailable as error:
                raise WorkerError(str(error)) from error
        if not sessions:
            return self._server.create_database()
        if sessions not in self._templates:
            address = self._server.create_database()
            copy_to_postgres(self._history(sessions) / "keryx.db", address)
            self._templates[sessions] = address
        return self._server.create_database(template=self._templates[sessions])


async def fill(path: Path, *, sessions: int) -> None:
    """Make a store of conversations that have one question and one answer each, all of it sent and searchable."""
    clock = FillingClock()
    start = clock.now() - (sessions + 60) * MINUTE
    database = open_database(path, clock=clock)
    ids = Ids()
    try:
        await database.write(let_in)
        connector = await database.write(
            lambda tx: take_connector(tx, platform=PLATFORM, account="", holder="filling")
        )
        assert connector is not None, "nobody else is there"
        began = time.perf_counter()
        for first in range(0, sessions, TOGETHER):
            clock.filling_at = start + first * MINUTE
            numbers = range(first, min(first + TOGETHER, sessions))
            await database.write(partial(_converse, connector=connector, numbers=numbers, ids=ids))
            if numbers.stop % SAY_EVERY == 0:
                _say(f"{numbers.stop:,} of {sessions:,} conversations in {time.perf_counter() - began:.0f} s")
    finally:
        await database.close()
    await _index(path)


def _converse(tx: Tx, *, connector: Connector, numbers: range, ids: Ids) -> None:
    """Hold conversations as a gateway would, from the message to the receipt, all in one transaction."""
    reply = Reply(message=NewMessage(role="assistant", parts=(TextPart(text="".join(ANSWER)),)))
    # A lease on an account is short, and filling is long.
    take_connector(tx, platform=PLATFORM, account="", holder=connector.holder)
    for number in numbers:
        source = Source(
            platform=PLATFORM,
            chat_id=chat_name(number),
            chat_type="dm",
            user_id=USER,
            user_name="Ana",
            message_id=str(number),
        )
        text = TextPart(text=f"{number} {QUESTION}")
        inbound = Inbound(source=source, ref=f"old-{number}", parts=(text,))
        accepted = accept_message(tx, inbound, settings=Settings(), ids=ids, commands=COMMANDS)
        assert isinstance(accepted, Accepted), accepted
        begun = begin_turn(tx, holder="filling", session_id=accepted.session_id)
        assert begun is not None, "nothing else is under way"
        finish_turn(tx, begun.held, reply=reply, ids=ids)
    for delivery in claim_deliveries(tx, connector, limit=len(numbers)):
        record_delivery(tx, connector, delivery.id, Sent(message_id=str(delivery.id)), deduplicates=False)


async def _index(path: Path) -> None:
    """Bring the search index up to date, so that no measure pays for what was filled."""
    began = time.perf_counter()
    async with open_keryx(path) as keryx:
        await keryx.wait_indexed()
    _say(f"indexed in {time.perf_counter() - began:.0f} s")


def copy_to_postgres(path: Path, address: str) -> None:
    """Give a PostgreSQL store the rows and the index of an SQLite one, as if one transaction had written all of it."""
    asyncio.run(_migrate(address))
    began = time.perf_counter()
    with psycopg.connect(address) as target:
        # The rows come table by table, so that references lead to what comes later.
        target.execute("SET session_replication_role = replica")
        for file in (path, index_path(path)):
            source = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
            for (table,) in source.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
                if table != "keryx_schema":
                    _copy_table(source, target, str(table))
            source.close()
        target.execute(
            "UPDATE search_state SET position_xid = CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)"
        )
    with psycopg.connect(address, autocommit=True) as target:
        target.execute("VACUUM ANALYZE")
    _say(f"PostgreSQL was given the same history in {time.perf_counter() - began:.0f} s")


async def _migrate(address: str) -> None:
    await open_database(address).close()


def _copy_table(source: apsw.Connection, target: Target, table: str) -> None:
    columns = [str(row[1]) for row in source.execute(f"PRAGMA table_info({table})").fetchall()]
    target.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    into = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)
    with target.cursor() as cursor, cursor.copy(into) as copy:
        for row in source.execute(f"SELECT {', '.join(columns)} FROM {table}"):
            copy.write_row(row)
    # Whatever numbers the database gives out itself go on after the last one.
    numbered = target.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND is_identity = 'YES'",
        (table,),
    ).fetchall()
    for (column,) in numbered:
        target.execute(
            sql.SQL(
                "SELECT setval(pg_get_serial_sequence({}, {}), COALESCE(MAX({}), 0) + 1, false) FROM {}"
            ).format(
                sql.Literal(table), sql.Literal(column), sql.Identifier(str(column)), sql.Identifier(table)
            )
        )


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)
