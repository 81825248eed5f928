"""Open the database of an address: the only module that chooses between SQLite and PostgreSQL."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from keryx.clock import Clock
from keryx.errors import InvalidValue
from keryx.store.database import Database, Hook


def open_database(
    address: str | Path,
    *,
    clock: Clock | None = None,
    hook: Hook | None = None,
    marker_folder: Path | None = None,
) -> Database:
    """Open ``sqlite:///path``, a bare path, or ``postgresql://…``; blocks, so call it from a thread.

    ``marker_folder`` is where a file tells that a SQLite store was created, in case the store's volume is lost.
    """
    text = str(address)
    # Import the drivers here and not above: `keryx --help` must not pay for them.
    if text.startswith(("postgresql://", "postgres://")):
        from keryx.store.postgres import PostgresDatabase  # noqa: PLC0415

        return PostgresDatabase.open(text, clock=clock, hook=hook)
    from keryx.store.sqlite import SqliteDatabase  # noqa: PLC0415

    return SqliteDatabase.open(sqlite_path(text), clock=clock, hook=hook, marker_folder=marker_folder)


def sqlite_path(address: str) -> Path:
    """Return the file of a ``sqlite:///…`` address or a bare path."""
    if "://" not in address:
        path = address
    else:
        url = urlsplit(address)
        if url.scheme != "sqlite" or url.netloc or url.query or url.fragment:
            raise InvalidValue(
                f"{address!r} is not an address of a store. Use sqlite:///relative.db, sqlite:////absolute.db, "
                "a bare path, or postgresql://…"
            )
        path = unquote(url.path).removeprefix("/")
    if not path or path == ":memory:":
        raise InvalidValue(f"{address!r} names no file. A store is a file on disk: give its path.")
    return Path(path).expanduser()
