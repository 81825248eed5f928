"""A private PostgreSQL server that lives as long as the tests.

The server listens on a unix socket in its own directory and on no port, so several can run side by side. Its
databases sort text by the rules of American English, unlike SQLite: a query that depends on an unstated order of text
fails here and not at a user's.
"""

import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import psycopg

from keryx.errors import StoreUnavailable

_USER = "keryx"
_VERSION_MIN = 15
_FOLDER_CHARACTERS_MAX = 60
_DURABILITY_OFF = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
_INITDB = (
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=icu",
    "--icu-locale=en-US",
    "--no-sync",
    "--no-instructions",
)


def find_programs(*, path: str | None = None, debian: Path = Path("/usr/lib/postgresql")) -> Path:
    """Return the directory of the newest PostgreSQL server programs on this machine, or raise StoreUnavailable.

    Looks on ``path`` (default: the process's PATH) and in Debian's directories, one for each version.
    """
    on_path = shutil.which("initdb", path=path)
    places = [Path(on_path).resolve().parent] if on_path else []
    places += sorted(debian.glob("*/bin"))
    newest = max(places, key=_version, default=None)
    if newest is None or _version(newest) < _VERSION_MIN:
        raise StoreUnavailable(
            f"There are no server programs of PostgreSQL {_VERSION_MIN} or newer (initdb, pg_ctl) on the PATH or in "
            f"{debian}. Install PostgreSQL, on Debian with `apt-get install postgresql`."
        )
    return newest


def _version(place: Path) -> int:
    """Return the major version of the programs in ``place``, or 0 if they do not run."""
    try:
        said = [_ask_version(place / program) for program in ("initdb", "pg_ctl")]
    except (OSError, subprocess.CalledProcessError):
        return 0
    # The output is: initdb (PostgreSQL) 15.14 (Debian …), or: initdb (PostgreSQL) 19devel.
    return min(int(found[1]) if (found := re.search(r"\(PostgreSQL\) (\d+)", text)) else 0 for text in said)


def _ask_version(program: Path) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout


class PrivateServer:
    """A PostgreSQL server that runs during a ``with`` block.

    With ``durable`` it syncs to disk as a real server does, for measurements; without, a power cut would lose data.
    ``settings`` are added to its configuration. Entering raises StoreUnavailable if the server cannot start.
    """

    def __init__(self, *, durable: bool = False, settings: Mapping[str, str] | None = None) -> None:
        self._settings = {
            "listen_addresses": "",
            "max_connections": "200",
            **({} if durable else _DURABILITY_OFF),
            **(settings or {}),
        }
        self._names = count(1)
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            self._start(undo)
            self._cleanup = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://{_USER}@/{database}?host={self._directory}"

    def create_database(self, *, template: str | None = None) -> str:
        """Create an empty database, or a copy of the database at ``template``, and return its address."""
        name = f"db_{next(self._names)}"
        self._run(
            f"CREATE DATABASE {name} TEMPLATE {_name_in(template) if template else 'template1'} STRATEGY FILE_COPY"
        )
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop the database at this address, and close its connections."""
        self._run(f"DROP DATABASE {_name_in(url)} WITH (FORCE)")

    def restart(self) -> None:
        """Stop as in a crash, with all connections cut, and start again; return when the server accepts connections."""
        self._control("stop", "--mode", "immediate")
        self._control("start", *self._options)

    def _start(self, undo: ExitStack) -> None:
        programs = find_programs()
        self._directory = Path(tempfile.mkdtemp(prefix="keryx-pg-", dir=_folder()))
        undo.callback(shutil.rmtree, self._directory, ignore_errors=True)
        owner = _other_than_root(self._directory)

        def run(program: str, *arguments: str) -> None:
            _run_program([str(programs / program), *arguments], directory=self._directory, owner=owner)

        data = str(self._directory / "data")
        run("initdb", "--pgdata", data, "--username", _USER, *_INITDB)
        settings = {"unix_socket_directories": self._directory, **self._settings}
        options = " ".join(f"-c '{name}={value}'" for name, value in settings.items())
        self._options = ("--log", str(self._directory / "log"), "--options", options)
        self._control = partial(run, "pg_ctl", "--wait", "--pgdata", data)
        self._control("start", *self._options)
        undo.callback(self._control, "stop", "--mode", "immediate")

    def _run(self, statement: str) -> None:
        # The names come from this module, and PostgreSQL accepts no parameters in these statements.
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)


def _folder() -> str:
    """Return a folder for the server: its user must have access, and a unix socket's path has at most 107 bytes."""
    folder = tempfile.gettempdir()
    is_open = Path(folder).stat().st_mode & stat.S_IXOTH
    return folder if is_open and len(folder) <= _FOLDER_CHARACTERS_MAX else "/tmp"


def _name_in(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def _other_than_root(directory: Path) -> dict[str, Any]:
    """Return the server's user as arguments for ``subprocess.run``: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            user = known[name]
            os.chown(directory, user.pw_uid, user.pw_gid)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise StoreUnavailable("PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody`.")


def _run_program(command: list[str], *, directory: Path, owner: dict[str, Any]) -> None:
    # Use a minimal environment: PGDATA and similar variables must not reach the program. Write the output to a file,
    # because the server that pg_ctl leaves behind would keep a pipe open.
    with (directory / "output").open("w+b") as output:
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}
        ended = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=directory,
            env=environment,
            **owner,
        )
        output.seek(0)
        said = output.read().decode(errors="replace")
    if ended.returncode:
        log = directory / "log"
        said += log.read_text(errors="replace") if log.exists() else ""
        raise StoreUnavailable(
            f"{Path(command[0]).name} of the private PostgreSQL server failed: {said.strip()}"
        )


if __name__ == "__main__":  # `--find`: print the programs' directory, for scripts/test
    try:
        sys.stdout.write(f"{find_programs()}\n")
    except StoreUnavailable as error:
        sys.exit(str(error))
