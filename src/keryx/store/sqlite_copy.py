"""Copy a SQLite store before it is migrated, and delete the copies after 30 days.

A copy appears under its name only when it is complete and checked.
"""

import logging
import os
import shutil
from contextlib import closing
from glob import escape
from pathlib import Path
from typing import Final

import apsw

from keryx.clock import DAY, Micros
from keryx.errors import StoreError
from keryx.store.sqlite_files import file_uri, make_private

KEPT: Final = 30 * DAY
ROOM: Final = 1.2
"""The free space that is needed, in sizes of the store: the migration itself needs some, too."""
MEGABYTE: Final = 1_000_000
_log = logging.getLogger("keryx.store")


def copy_before_migration(path: Path, schema: int, *, now: Micros) -> Path:
    """Copy the store with this schema number, check the copy and return its path, or raise ``StoreError``.

    Call it while no other process can write. A transaction of the caller is not part of the copy.
    """
    log = path.with_name(f"{path.name}-wal")
    needed = round(sum(each.stat().st_size for each in (path, log) if each.exists()) * ROOM)
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise StoreError(
            f"The store {path} is copied before it is migrated, but {path.parent} has too little space: "
            f"{needed / MEGABYTE:,.1f} MB are needed and {free / MEGABYTE:,.1f} MB are free. Free some space and start "
            "again. Nothing was changed."
        )
    _log.info("copying the store before its migration (%s MB)", f"{needed / MEGABYTE:,.1f}")
    target = path.with_name(f"{path.name}.schema-{schema}-{now}")
    draft = target.with_name(f"{target.name}.part")
    make_private(draft)
    try:
        _copy(path, draft)
        _sync(draft)
        draft.replace(target)
        _sync(target.parent)
    finally:
        draft.unlink(missing_ok=True)
    return target


def _copy(path: Path, draft: Path) -> None:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with (
        closing(apsw.Connection(file_uri(path), flags=flags)) as store,
        closing(apsw.Connection(str(draft))) as copy,
    ):
        with copy.backup("main", store, "main") as backup:
            backup.step()
        copy.execute("PRAGMA journal_mode=DELETE").fetchall()  # the copy needs no log beside it
        found = copy.execute("PRAGMA integrity_check(1)").fetchall()
    if found != [("ok",)]:
        raise StoreError(
            f"The copy of {path} that was made before its migration is damaged ({found[0][0]}); the store may be, too. "
            "Nothing was changed. Restore a backup, or ask for help with this message."
        )


def delete_old_copies(path: Path, *, now: Micros) -> None:
    """Delete the copies of the store that are older than 30 days, and what a crash left of an unfinished one."""
    for copy in path.parent.glob(f"{escape(path.name)}.schema-*"):
        made_at = copy.name.rpartition("-")[2]
        if made_at.endswith(".part"):
            copy.unlink(missing_ok=True)
        elif made_at.isdecimal() and int(made_at) + KEPT < now:
            copy.unlink(missing_ok=True)
            _log.info("deleted %s, a copy from before a migration 30 days ago", copy)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
