"""PostgreSQL for one run: a private server with full durability, gone when the run is.

A database is kept beyond the run as a dump. A restored one is good for searching only, which is what it is for: what is
written to it later would have older transaction numbers than what is in it.
"""

import subprocess
from contextlib import ExitStack
from pathlib import Path

from bench.driver import WorkerError
from keryx.errors import StoreUnavailable
from keryx.testing.postgres import PrivateServer, find_programs

ADDRESS_FILE = "address.txt"
DUMP_FILE = "keryx.dump"


class Databases:
    """The run's databases; the server starts when the first one is asked for."""

    def __init__(self, exits: ExitStack) -> None:
        self._exits = exits
        self._server: PrivateServer | None = None
        self._made: set[Path] = set()

    @property
    def missing(self) -> str | None:
        """Why there can be none on this machine, or None where there can."""
        try:
            find_programs()
        except StoreUnavailable as error:
            return str(error)
        return None

    def provide(self, folder: Path) -> None:
        """Make the database of *folder* and write its address there: an empty one, or what was dumped there."""
        if folder in self._made:
            return
        address = self._started().create_database()
        if (folder / DUMP_FILE).exists():
            _run("pg_restore", "--no-owner", "--jobs=2", "--dbname", address, str(folder / DUMP_FILE))
            _run("vacuumdb", "--analyze-only", "--quiet", "--dbname", address)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ADDRESS_FILE).write_text(address, encoding="utf-8")
        self._made.add(folder)

    def _started(self) -> PrivateServer:
        if self._server is None:
            try:
                self._server = self._exits.enter_context(PrivateServer(durable=True))
            except StoreUnavailable as error:
                raise WorkerError(str(error)) from error
        return self._server

    def dump(self, folder: Path) -> None:
        """Keep the database of *folder* for the next run."""
        address = (folder / ADDRESS_FILE).read_text(encoding="utf-8")
        _run("pg_dump", "--format=custom", "--compress=0", "--file", str(folder / DUMP_FILE), address)


def _run(program: str, *arguments: str) -> None:
    done = subprocess.run(
        [find_programs() / program, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise WorkerError(f"{program} failed: {done.stderr.strip()}")
