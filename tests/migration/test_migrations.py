"""Migrations from any schema to the current one, completely or not at all, and never from a newer one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from keryx.errors import StoreError, StoreTooNew
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.store.migrate import (
    Migration,
    migrate_postgres,
    migrate_sqlite,
    migrations,
    read_migrations,
    search_schema,
    search_tables,
    steps_from,
)
from keryx.store.opening import open_database
from keryx.testing.postgres import PrivateServer
from tests.conformance.talk import Talk
from tests.migration.schema import (
    STORE,
    describe_postgres,
    describe_sqlite,
    snapshot_postgres,
    snapshot_sqlite,
)

NEXT_STEP = Migration(
    number=len(migrations("sqlite")) + 1,
    name="next",
    compatible=1,
    statements=(
        "CREATE TABLE novelties (id BIGINT PRIMARY KEY, name TEXT NOT NULL)",
        "ALTER TABLE people ADD COLUMN novelty_id INTEGER",
        "INSERT INTO novelties (id, name) SELECT id, name FROM people",
        "CREATE INDEX novelties_by_name ON novelties (name)",
    ),
)
APPLIED = [*((number, 0) for number in range(1, NEXT_STEP.number)), (NEXT_STEP.number, 7)]
OLD_PERSON = "INSERT INTO people (name, role, created_at) VALUES ('Ana', 'owner', 0)"
OLD_AUDIENCE = "INSERT INTO audiences (id, key, created_at) VALUES (1, 'person:1', 0)"
OLD_SESSION = (
    "INSERT INTO sessions (id, profile, owner_id, audience_id, state, platform, source, started_at, last_active_at)"
    " VALUES ('s', 'main', 1, 1, 'open', 'local', '{}', 0, 0)"
)
OLD_ITEM = (
    "INSERT INTO inbox (id, session_id, kind, platform, ref, seq, state, busy_mode, account, source, parts,"
    " received_at, ready_at) VALUES ({}, 's', '{}', '{}', 'r{}', {}, 'ready', 'queue', '', '{{}}', '[]', 0, 0)"
)
PURPOSES = [
    # The kind and the platform of an item before step 10; its purpose and its platform since.
    (("message", "telegram"), ("answer", "telegram")),
    (("agent", "flush"), ("flush", "")),
    (("agent", "title"), ("title", "")),
    (("agent", "compress"), ("compress", "")),
    (("agent", "delegation"), ("task", "")),
    (("agent", "telegram"), ("rerun", "telegram")),
    (("schedule", "schedule"), ("answer", "")),
    (("process", "process"), ("answer", "")),
    (("approval", "approval"), ("answer", "")),
    (("approval", "telegram"), ("answer", "telegram")),
    (("command", "title"), ("answer", "title")),
]
NEWER = "INSERT INTO keryx_schema VALUES (99, 'future', {compatible}, '9.9.0', 0)"


class PlantedFault(Exception):
    pass


class FragileConnection(psycopg.Connection[Any]):
    """A connection that breaks before the n-th statement."""

    statements_left: int | None = None

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        if self.statements_left is not None:
            self.statements_left -= 1
            if self.statements_left < 0:
                raise PlantedFault
        return super().execute(*args, **kwargs)


@pytest.fixture
def empty_url(postgres_server: PrivateServer) -> Iterator[str]:
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


# ---------------------------------------------------------------------------------------------- the files


def test_both_databases_have_the_same_steps() -> None:
    sqlite, postgres = (
        [(step.number, step.name, step.compatible) for step in migrations(dialect)]
        for dialect in ("sqlite", "postgres")
    )
    assert sqlite == postgres
    assert [number for number, _, _ in sqlite] == list(range(1, len(sqlite) + 1))


def test_a_misnamed_step_is_refused(tmp_path: Path) -> None:
    (tmp_path / "2_wrong.sql").write_text("SELECT 1")
    with pytest.raises(StoreError, match="not a valid name for a migration"):
        read_migrations(tmp_path)


def test_a_gap_in_the_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0001_one.sql").write_text("SELECT 1")
    (tmp_path / "0003_three.sql").write_text("SELECT 1")
    with pytest.raises(StoreError, match=r"numbered \[1, 3\]"):
        read_migrations(tmp_path)


def test_a_step_names_the_oldest_compatible_step_or_only_itself(tmp_path: Path) -> None:
    (tmp_path / "0001_one.sql").write_text("-- Doc.\nCREATE TABLE a (x INT);\n")
    (tmp_path / "0002_two.sql").write_text("-- compatible: 1\nCREATE TABLE b (x INT);\n-- c\nDROP TABLE a;")
    one, two = read_migrations(tmp_path)
    assert (one.compatible, two.compatible) == (1, 1)
    assert two.statements == ("CREATE TABLE b (x INT)", "DROP TABLE a")
    (tmp_path / "0003_three.sql").write_text("DROP TABLE b")
    assert read_migrations(tmp_path)[-1].compatible == 3


# ---------------------------------------------------------------------------------------------- snapshots


def test_the_sqlite_snapshot_matches_the_migrations() -> None:
    written = (STORE / "schema.sqlite.sql").read_text(encoding="utf-8")
    assert snapshot_sqlite() == written, "run scripts/schema and review what changed"


def test_the_postgres_snapshot_matches_the_migrations(empty_url: str) -> None:
    written = (STORE / "schema.postgres.sql").read_text(encoding="utf-8")
    assert snapshot_postgres(empty_url) == written, "run scripts/schema and review what changed"


def test_both_databases_have_the_same_tables_columns_and_indexes(postgres_url: str) -> None:
    sqlite = apsw.Connection(":memory:")
    migrate_sqlite(sqlite, now=0)
    for statement in search_schema("sqlite"):
        sqlite.execute(statement)
    here = set(
        sqlite.execute(
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'"
        )
    )
    indexes = {
        name for (name,) in sqlite.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE % INDEX%'")
    }
    with psycopg.connect(postgres_url) as postgres:
        there = set(
            postgres.execute(
                "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
            )
        )
        names = {
            name
            for (name,) in postgres.execute("SELECT indexname FROM pg_indexes WHERE schemaname = 'public'")
        }
    assert there - here == {("feed", "xid")}
    assert here - there == set()
    assert indexes <= names


def test_the_names_of_the_index_s_tables_are_known() -> None:
    for dialect in ("sqlite", "postgres"):
        made = re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", " ".join(search_schema(dialect)))
        assert list(search_tables(dialect)) == made
        assert "search_state" in made


# ---------------------------------------------------------------------------------------------- steps


def test_an_older_sqlite_file_is_migrated_completely_or_stays_unchanged(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "x.db"))
    migrate_sqlite(connection, now=0)
    connection.execute("INSERT INTO people (name, role, created_at) VALUES ('Ana', 'owner', 0)")
    before = describe_sqlite(connection)
    steps = (*migrations("sqlite"), NEXT_STEP)
    crashes = 0
    while True:
        statements_left = crashes

        def fault(_cursor: Any, _sql: str, _bindings: Any) -> bool:
            nonlocal statements_left
            statements_left -= 1
            if statements_left < 0:
                connection.exec_trace = None  # let the driver roll back
                raise PlantedFault
            return True

        connection.exec_trace = fault
        try:
            migrate_sqlite(connection, now=7, steps=steps)
        except PlantedFault:
            crashes += 1
            assert describe_sqlite(connection) == before
            assert connection.execute("SELECT max(number) FROM keryx_schema").fetchall() == [
                (NEXT_STEP.number - 1,)
            ]
        else:
            break
    connection.exec_trace = None
    assert crashes > len(NEXT_STEP.statements)
    assert connection.execute("SELECT name FROM novelties").fetchall() == [("Ana",)]
    assert (
        connection.execute("SELECT number, applied_at FROM keryx_schema ORDER BY number").fetchall()
        == APPLIED
    )
    connection.close()


def test_a_new_sqlite_file_is_created_completely_or_stays_empty(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "x.db"))
    for place, statement in enumerate(migrations("sqlite")[0].statements):
        broken = list(migrations("sqlite")[0].statements)
        broken[place] = f"{statement} nonsense"
        step = Migration(number=1, name="ground", compatible=1, statements=tuple(broken))
        with pytest.raises(apsw.SQLError):
            migrate_sqlite(connection, now=0, steps=[step])
        assert describe_sqlite(connection) == ""
    migrate_sqlite(connection, now=0)
    assert describe_sqlite(connection) != ""
    connection.close()


def test_an_older_postgres_database_is_migrated_completely_or_stays_unchanged(postgres_url: str) -> None:
    connection = FragileConnection.connect(postgres_url, autocommit=True)
    connection.execute("INSERT INTO people (name, role, created_at) VALUES ('Ana', 'owner', 0)")
    before = describe_postgres(connection)
    steps = (*migrations("postgres"), NEXT_STEP)
    crashes = 0
    while True:
        connection.statements_left = crashes
        try:
            migrate_postgres(connection, now=7, steps=steps)
        except PlantedFault:
            crashes += 1
            connection.statements_left = None
            assert describe_postgres(connection) == before
        else:
            break
    connection.statements_left = None
    assert crashes > len(NEXT_STEP.statements)
    assert connection.execute("SELECT name FROM novelties").fetchall() == [("Ana",)]
    assert (
        connection.execute("SELECT number, applied_at FROM keryx_schema ORDER BY number").fetchall()
        == APPLIED
    )
    connection.close()


def test_a_new_postgres_database_is_created_completely_or_stays_empty(empty_url: str) -> None:
    connection = FragileConnection.connect(empty_url, autocommit=True)
    for statements in range(1, 200, 20):
        connection.statements_left = statements
        try:
            migrate_postgres(connection, now=0)
        except PlantedFault:
            connection.statements_left = None
            assert describe_postgres(connection) == ""
        else:
            break
    connection.statements_left = None
    assert statements > 60
    assert "CREATE TABLE sessions" in describe_postgres(connection)
    connection.close()


# ---------------------------------------------------------------------------------------------- newer stores


async def make_newer(address: str, *, compatible: int) -> None:
    """Create a store as a later Keryx would leave it."""
    database: Database = open_database(address)
    await database.close()
    statement = NEWER.format(compatible=compatible)
    if database.dialect == "postgres":
        with psycopg.connect(address) as connection:
            connection.execute(statement.encode())
    else:
        file = apsw.Connection(address)
        file.execute(statement)
        file.close()


async def test_a_newer_store_is_refused_with_the_version_to_install(store_address: str) -> None:
    await make_newer(store_address, compatible=99)
    with pytest.raises(StoreTooNew) as refusal:
        open_database(store_address)
    assert re.fullmatch(
        r"This store was written by Keryx 9\.9\.0 \(schema 99\); this is Keryx \S+, which knows schemas up to \d+\. "
        r"Install Keryx 9\.9\.0 or newer; nothing was changed\.",
        str(refusal.value),
    )


async def test_a_newer_store_with_a_compatible_schema_is_opened(store_address: str, ids: Ids) -> None:
    await make_newer(store_address, compatible=1)
    database = open_database(store_address)
    talk = await Talk.begin(database, ids)
    assert await talk.texts(await talk.session("understood")) == ["understood"]
    await database.close()


async def test_a_store_of_the_first_schema_keeps_its_data_after_migration(
    store_address: str, empty_url: str, tmp_path: Path, ids: Ids
) -> None:
    """Data from the first version is still there, and works with this version."""
    is_sqlite = "://" not in store_address
    address = str(tmp_path / "old.db") if is_sqlite else empty_url
    if is_sqlite:
        connection = apsw.Connection(address)
        migrate_sqlite(connection, now=0, steps=migrations("sqlite")[:1])
        connection.execute(OLD_PERSON)
        connection.close()
    else:
        with psycopg.connect(address, autocommit=True) as server:
            migrate_postgres(server, now=0, steps=migrations("postgres")[:1])
            server.execute(OLD_PERSON.encode())
    database = open_database(address)
    talk = await Talk.begin(database, ids)
    assert talk.owner.name == "Ana"
    assert await talk.texts(await talk.session("understood")) == ["understood"]
    await database.close()


async def test_the_purpose_of_an_old_inbox_item_becomes_a_column(
    store_address: str, empty_url: str, tmp_path: Path
) -> None:
    items = [
        OLD_ITEM.format(number, kind, platform, number, "NULL")
        for number, ((kind, platform), _) in enumerate(PURPOSES)
    ]
    rows: list[tuple[str, str]]
    look = "SELECT purpose, platform FROM inbox ORDER BY id"
    if "://" not in store_address:
        file = apsw.Connection(str(tmp_path / "old.db"))
        migrate_sqlite(file, now=0, steps=migrations("sqlite")[:9])
        for statement in (OLD_PERSON, OLD_AUDIENCE, OLD_SESSION, *items):
            file.execute(statement)
        migrate_sqlite(file, now=0)
        rows = list(file.execute(look))
        file.close()
    else:
        with psycopg.connect(empty_url, autocommit=True) as server:
            migrate_postgres(server, now=0, steps=migrations("postgres")[:9])
            for statement in (OLD_PERSON, OLD_AUDIENCE, OLD_SESSION, *items):
                server.execute(statement.encode())
            migrate_postgres(server, now=0)
            rows = server.execute(look).fetchall()
    assert rows == [after for _, after in PURPOSES]


OLD_TURN = (
    "INSERT INTO turns (id, session_id, branch_no, state, purpose, holder, epoch, begun_at)"
    " VALUES ({0}, 's', 0, 'finished', 'reply', 'h', 1, 0)"
)
OLD_STEP = (
    "INSERT INTO steps (turn_id, call_id, no, session_id, name, effect, state, idempotency_key, call_seq)"
    " VALUES (2, 'guide-2', 1, 's', 'list_sessions', 'pure', 'done', 'k', 2)"
)
OLD_MESSAGE = (
    "INSERT INTO messages (session_id, branch_no, seq, role, parts, turn_id, finish_reason, tool_call_count,"
    " input_tokens, cached_tokens, output_tokens, thinking_tokens, cost_micros, created_at)"
    " VALUES ('s', 0, {}, '{}', '{}', {}, 'stop', 0, 0, 0, 0, 0, 0, 0)"
)
GUIDED = [
    ("user", '"hello"', 1, "stop"),
    (
        "assistant",
        "\"No model answers here: I am only Keryx''s built-in guide. To set one up, …\"",
        1,
        "guide",
    ),
    ("assistant", '[{"t":"call","id":"guide-2","name":"list_sessions","args":{}}]', 2, "guide"),
    ("assistant", '"None."', 2, "guide"),
    ("assistant", '"I know of no guide."', 3, "stop"),
]
"""Messages before step 11: role, parts and turn; and their finish reason since."""


async def test_old_answers_of_the_guide_are_marked(
    store_address: str, empty_url: str, tmp_path: Path
) -> None:
    messages = [
        OLD_MESSAGE.format(number, role, parts, turn_id)
        for number, (role, parts, turn_id, _) in enumerate(GUIDED, start=1)
    ]
    turns = [OLD_TURN.format(number) for number in (1, 2, 3)]
    statements = [OLD_PERSON, OLD_AUDIENCE, OLD_SESSION, *turns, OLD_STEP, *messages]
    look = "SELECT finish_reason FROM messages ORDER BY seq"
    rows: list[tuple[str]]
    if "://" not in store_address:
        file = apsw.Connection(str(tmp_path / "old.db"))
        migrate_sqlite(file, now=0, steps=migrations("sqlite")[:10])
        for statement in statements:
            file.execute(statement)
        migrate_sqlite(file, now=0)
        rows = list(file.execute(look))
        file.close()
    else:
        with psycopg.connect(empty_url, autocommit=True) as server:
            migrate_postgres(server, now=0, steps=migrations("postgres")[:10])
            for statement in statements:
                server.execute(statement.encode())
            migrate_postgres(server, now=0)
            rows = server.execute(look).fetchall()
    assert [row[0] for row in rows] == [reason for *_, reason in GUIDED]


def test_a_keryx_that_knows_no_purpose_refuses_the_store() -> None:
    state = (10, migrations("sqlite")[9].compatible, "0.2.0")
    with pytest.raises(StoreTooNew, match=r"Install Keryx 0\.2\.0 or newer"):
        steps_from(state, migrations("sqlite")[:9])


async def test_opening_an_up_to_date_store_does_not_wait_for_a_writer(store_address: str) -> None:
    database = open_database(store_address)
    if database.dialect == "postgres":
        with psycopg.connect(store_address) as busy:
            busy.execute("LOCK TABLE search_blocks, people IN ACCESS EXCLUSIVE MODE")
            await open_database(store_address).close()
    else:
        file = apsw.Connection(store_address)
        file.execute("BEGIN IMMEDIATE")
        await open_database(store_address).close()
        file.execute("ROLLBACK")
        file.close()
    await database.close()
