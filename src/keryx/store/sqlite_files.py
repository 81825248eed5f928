"""The files of a SQLite store: how they are created, and how a connection to them is configured."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import apsw

from keryx.errors import StoreError, StoreUnsafe
from keryx.store.migrate import search_schema

SAFE_SQLITE = (3, 51, 3)
"""Older libraries can damage a WAL file when two connections write and checkpoint at the same time."""
LOG_ATTEMPTS_MAX = 200
LOG_PAUSE_SECONDS = 0.01
LOG_BYTES_MAX = 64 * 1024 * 1024


def index_path(path: Path) -> Path:
    """Return the path of the search index of the store at ``path``."""
    return path.with_name(f"{path.name}-search")


def check_version(version: str) -> None:
    """Raise ``StoreUnsafe`` for a SQLite library that can damage the file."""
    if tuple(int(part) for part in version.split(".")) < SAFE_SQLITE:
        raise StoreUnsafe(
            f"SQLite {version} can damage a shared file (fixed in {'.'.join(map(str, SAFE_SQLITE))}). "
            "Install a newer apsw: its wheels bring SQLite along."
        )


def set_up(connection: apsw.Connection) -> None:
    """Configure a new connection."""
    # Plans do not depend on the bound values. Otherwise each statement would be planned again at every run.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    _keep_log(connection)
    for pragma in (
        "synchronous=FULL",
        "wal_autocheckpoint=0",
        "foreign_keys=ON",
        "trusted_schema=OFF",
        "temp_store=MEMORY",
        "cache_size=-16000",
        f"journal_size_limit={LOG_BYTES_MAX}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _keep_log(connection: apsw.Connection) -> None:
    """Switch to a write-ahead log.

    If several processes do so on a new file at once, all but one get "busy" immediately, whatever the time-out is: each
    holds a lock that the other waits for.
    """
    for _ in range(LOG_ATTEMPTS_MAX):
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
        except apsw.BusyError:
            threading.Event().wait(LOG_PAUSE_SECONDS)
        else:
            return
    connection.execute("PRAGMA journal_mode=WAL").fetchall()


def set_up_index(connection: apsw.Connection) -> None:
    """Make the tables of the index, which may lose its last commits in a power cut."""
    set_up(connection)
    connection.execute("PRAGMA synchronous=NORMAL")
    for statement in search_schema("sqlite"):
        connection.execute(statement)


def reset_index(connection: apsw.Connection) -> None:
    """Empty the index file, whatever it contains."""
    connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
    connection.execute("VACUUM")
    connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)
    set_up_index(connection)


def file_uri(path: Path) -> str:
    """Return the path as a URI for SQLite."""
    return f"file:{quote(os.fsencode(path.resolve()))}"


def make_private(path: Path) -> None:
    """Create the file with access for its owner only; an existing file is not opened, which would drop its locks."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(
            f"The store {path} cannot be opened: {error.strerror}. Name a file in a folder you may write to."
        ) from error
