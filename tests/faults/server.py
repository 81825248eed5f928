"""A PostgreSQL server that a test can crash, and a connection to it that a test can cut at the worst moment."""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit, urlunsplit

from keryx.testing.postgres import find_programs
from tests.leaks import outliving_the_test

SOCKET = ".s.PGSQL.5432"
Cut = Literal["before the server receives it", "before its answer", "long before the server receives it"]
LONG_SECONDS = 0.5


def directory_of(url: str) -> Path:
    """Return the folder of the server's socket."""
    return Path(parse_qs(urlsplit(url).query)["host"][0])


def pg_ctl(url: str, command: str, *options: str) -> None:
    """Stop or start the private server at this address, as the server's user.

    The server belongs to a fixture, which stops it after the last test that needs it.
    """
    data = directory_of(url) / "data"
    owner = data.stat()
    as_owner: dict[str, Any] = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
    with outliving_the_test():
        subprocess.run(
            [str(find_programs() / "pg_ctl"), command, "--wait", "--pgdata", str(data), *options],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=data.parent,
            **(as_owner if os.geteuid() == 0 else {}),
        )


class Line:
    """Forwards a unix socket to a server, and cuts a connection at its next COMMIT on request."""

    def __init__(self, url: str, folder: Path) -> None:
        self._server = str(directory_of(url) / SOCKET)
        self.url = urlunsplit(urlsplit(url)._replace(query=f"host={folder}"))
        self.cuts = threading.Semaphore(0)
        """Released at every cut."""
        self._cut_at: Cut | None = None
        self._dies_at_cut = False
        self._dead = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen(32)
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_next_commit(self, cut: Cut, *, and_die: bool = False) -> None:
        """Cut the connection of the next COMMIT; with ``and_die``, cut all connections first."""
        self._dies_at_cut = and_die
        self._cut_at = cut

    def go_dead(self, *, but: frozenset[socket.socket] = frozenset()) -> None:
        """Cut all connections, and refuse new ones."""
        self._dead.set()
        for end in self._open - but:
            _close(end)

    def revive(self) -> None:
        """Accept new connections again."""
        self._dead.clear()

    def close(self) -> None:
        """Close the line."""
        self.go_dead()
        _close(self._listener)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                if self._dead.is_set():
                    raise ConnectionRefusedError
                server.connect(self._server)
            except OSError:
                _close(client)
                _close(server)
                continue
            self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(
                    target=self._pump, args=(source, target, source is client), daemon=True
                ).start()

    def _pump(self, source: socket.socket, target: socket.socket, to_server: bool) -> None:  # noqa: FBT001 - internal
        with suppress(OSError):
            while data := source.recv(65_536):
                cut = self._cut_at if to_server and data.endswith(b"COMMIT\x00") else None
                if cut is not None:
                    self._cut_at = None
                    if self._dies_at_cut:
                        self.go_dead(but=frozenset({source, target}))
                    self.cuts.release()
                    if cut != "before the server receives it":
                        source.shutdown(socket.SHUT_RDWR)
                        if cut == "long before the server receives it":
                            time.sleep(LONG_SECONDS)
                        target.sendall(data)
                        # The answer has no reader, and the other direction may have closed both ends already.
                        target.shutdown(socket.SHUT_WR)
                    break
                target.sendall(data)
        if source in self._open:
            _close(source)
            _close(target)
            self._open -= {source, target}


@contextmanager
def line_to(url: str, folder: Path) -> Iterator[Line]:
    """Yield a line to the server at ``url``, with its own socket in ``folder``, whose path must be short."""
    line = Line(url, folder)
    try:
        yield line
    finally:
        line.close()


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
