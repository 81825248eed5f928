"""A lock that only the end of its process lets go: who finds it free knows that its holder is dead.

It spares a restart the wait for leases that nobody will renew. It proves nothing else: a process that is frozen, or on
another machine, keeps what it holds until its time is up, and a lock that is not there says nothing.
"""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

from keryx.errors import StoreUnsafe
from keryx.gateway.desk import Bury, bury_nobody
from keryx.store.database import Database
from keryx.store.filesystem import refuse_network
from keryx.transactions.work_as_node import bury_node

if sys.platform != "win32":
    import fcntl

FOLDER = "alive"
"""In the data folder: a file for each process that works on its store, with the holder's name."""
_UNTIED = ".new"


@asynccontextmanager
async def tied(database: Database, data_dir: Path, holder: str) -> AsyncIterator[Bury]:
    """Hold ``holder``'s lock for the length of a block, and begin by freeing what dead processes held.

    Yields what frees it again, for those that die meanwhile.
    """
    if not _locks_work(data_dir):
        yield bury_nobody
        return
    folder = data_dir / FOLDER
    with hold_lifeline(folder, holder):
        bury = partial(_bury_dead, database, folder)
        await bury()
        yield bury


async def _bury_dead(database: Database, folder: Path) -> None:
    """Free what processes held whose locks are free."""
    for path in _list_locks(folder):
        with cut_lifeline(path) as dead:
            if dead is not None:
                await database.write(lambda tx, dead=dead: bury_node(tx, holder=dead))  # type: ignore[misc]


def _list_locks(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


@contextmanager
def hold_lifeline(folder: Path, holder: str) -> Iterator[None]:
    """Hold a lock under this name; it is gone with the block, or with the process."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # It gets its name when it is locked: nobody may find it free before.
    untied, path = folder / f"{holder}{_UNTIED}", folder / holder
    descriptor = os.open(untied, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        untied.rename(path)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def cut_lifeline(path: Path) -> Iterator[str | None]:
    """Yield the name of a dead holder, whose file is removed after the block; None where the holder may live."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield None  # it ended, or somebody else buried it
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        if path.suffix == _UNTIED:
            yield None  # killed, or about to be locked: either way it holds nothing
            return
        yield path.name
        path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _locks_work(data_dir: Path) -> bool:
    """Say whether a lock there is let go exactly when its process ends."""
    if sys.platform == "win32":
        return False
    with suppress(StoreUnsafe):
        refuse_network(data_dir)
        return True
    return False
