"""The private PostgreSQL server: found, started, removed, or refused with a sentence."""

from pathlib import Path

import psycopg
import pytest

from keryx.errors import StoreUnavailable
from keryx.testing.postgres import PrivateServer, find_programs


def install(place: Path, *, says: str, exit_code: int = 0) -> Path:
    """Install programs that only print a version."""
    place.mkdir(parents=True)
    for name in ("initdb", "pg_ctl"):
        (place / name).write_text(f"#!/bin/sh\necho '{name} {says}'\nexit {exit_code}\n")
        (place / name).chmod(0o755)
    return place


def ask(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(question.encode()).fetchone()
    assert row is not None
    return row[0]


def test_the_newest_programs_are_used_wherever_they_are(tmp_path: Path) -> None:
    old = install(tmp_path / "debian" / "15" / "bin", says="(PostgreSQL) 15.14 (Debian 15.14-0)")
    new = install(tmp_path / "debian" / "17" / "bin", says="(PostgreSQL) 17.2")
    newest = install(tmp_path / "local", says="(PostgreSQL) 19devel")
    assert find_programs(path=str(newest), debian=tmp_path / "debian") == newest
    assert find_programs(path=str(old), debian=tmp_path / "debian") == new


@pytest.mark.parametrize(
    ("says", "exit_code"), [("(PostgreSQL) 14.9", 0), ("(PostgreSQL) 16.1", 1), ("is not what you think", 0)]
)
def test_programs_that_are_too_old_or_do_not_run_are_refused_with_advice(
    tmp_path: Path, says: str, exit_code: int
) -> None:
    place = install(tmp_path / "bin", says=says, exit_code=exit_code)
    with pytest.raises(StoreUnavailable, match="apt-get install postgresql"):
        find_programs(path=str(place), debian=tmp_path / "nowhere")


def test_an_incomplete_installation_is_refused(tmp_path: Path) -> None:
    (install(tmp_path / "bin", says="(PostgreSQL) 16.1") / "pg_ctl").unlink()
    with pytest.raises(StoreUnavailable):
        find_programs(path=str(tmp_path / "bin"), debian=tmp_path / "nowhere")


def test_a_copy_of_a_database_has_its_rows_and_is_independent(postgres_server: PrivateServer) -> None:
    original = postgres_server.create_database()
    with psycopg.connect(original) as connection:
        connection.execute("CREATE TABLE word AS SELECT 'kept' AS text")
    copy = postgres_server.create_database(template=original)
    with psycopg.connect(copy) as connection:
        connection.execute("UPDATE word SET text = 'changed'")
    assert ask(original, "SELECT text FROM word") == "kept"
    assert ask(copy, "SELECT text FROM word") == "changed"


def test_a_database_with_open_connections_can_be_dropped(postgres_server: PrivateServer) -> None:
    url = postgres_server.create_database()
    with psycopg.connect(url) as connection:
        postgres_server.drop_database(url)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_text_sorts_by_language_and_not_by_bytes_as_in_sqlite(postgres_server: PrivateServer) -> None:
    assert ask(postgres_server.url(), "SELECT 'a' < 'B'") is True


def test_a_durable_server_syncs_and_leaves_no_files_behind(
    postgres_server: PrivateServer,
) -> None:
    assert ask(postgres_server.url(), "SHOW fsync") == "off"
    with PrivateServer(durable=True, settings={"work_mem": "8MB"}) as server:
        directory = Path(str(ask(server.url(), "SHOW unix_socket_directories")))
        assert directory.is_dir()
        assert ask(server.url(), "SHOW fsync") == "on"
        assert ask(server.url(), "SHOW synchronous_commit") == "on"
        assert ask(server.url(), "SHOW work_mem") == "8MB"
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("CREATE TABLE word AS SELECT 'kept' AS text")
            server.restart()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT text FROM word")
        assert ask(server.url(), "SELECT text FROM word") == "kept"
    assert not directory.exists()


def test_a_server_that_does_not_start_says_why() -> None:
    server = PrivateServer(settings={"no_such_setting": "1"})
    with pytest.raises(StoreUnavailable, match='unrecognized configuration parameter "no_such_setting"'):
        server.__enter__()
