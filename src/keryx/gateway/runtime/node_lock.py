"""A file lock that is released only when its process ends: a free lock proves that its holder is dead.

It saves a restarted gateway the wait for leases that no process will renew. It proves nothing else: a process that is
frozen, or on another machine, keeps its leases until they expire, and a missing lock file means nothing.
"""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

from keryx.core.upkeep.transactions.record_heartbeat import release_dead_node
from keryx.errors import StoreUnsafe
from keryx.gateway.runtime.runtime import ReleaseDeadNodes, release_nothing
from keryx.store.database import Database
from keryx.store.filesystem import refuse_network

if sys.platform != "win32":
    import fcntl

FOLDER = "alive"
"""In the data folder: a file for each process that works on its store, with the holder's name."""
_UNLOCKED = ".new"


@asynccontextmanager
async def node_lock(database: Database, data_dir: Path, holder: str) -> AsyncIterator[ReleaseDeadNodes]:
    """Hold the lock of ``holder`` for the length of a block. First release the leases of dead processes.

    Yields the function that does so again, for processes that die later.
    """
    if not _locks_work(data_dir):
        yield release_nothing
        return
    folder = data_dir / FOLDER
    with hold_lock_file(folder, holder):
        release_dead_nodes = partial(_release_dead_nodes, database, folder)
        await release_dead_nodes()
        yield release_dead_nodes


async def _release_dead_nodes(database: Database, folder: Path) -> None:
    """Release the leases of the processes whose locks are free."""
    for path in sorted(folder.iterdir()):  # noqa: ASYNC240 - a handful of names
        with take_dead_lock(path) as dead:
            if dead is not None:
                await database.write(lambda tx, dead=dead: release_dead_node(tx, holder=dead))  # type: ignore[misc]


@contextmanager
def hold_lock_file(folder: Path, holder: str) -> Iterator[None]:
    """Hold a lock file of this name until the block, or the process, ends."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The file gets its name after it is locked, so that no other process finds it free before.
    unlocked, path = folder / f"{holder}{_UNLOCKED}", folder / holder
    descriptor = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        unlocked.rename(path)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def take_dead_lock(path: Path) -> Iterator[str | None]:
    """Yield the name of a dead holder, and remove its file after the block. Yield None if the holder may be alive."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield None  # the process has ended, or another one has released its leases
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        if path.suffix == _UNLOCKED:
            yield None  # killed, or about to be locked: in both cases it holds no lease
            return
        yield path.name
        path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _locks_work(data_dir: Path) -> bool:
    """Return whether locks in this folder are released exactly when their process ends."""
    if sys.platform == "win32":
        return False
    with suppress(StoreUnsafe):
        refuse_network(data_dir)
        return True
    return False
