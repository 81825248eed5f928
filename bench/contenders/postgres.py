"""Keryx on PostgreSQL, measured for search only.

The server belongs to the run; its address is in a file in the store's folder.
"""

from collections.abc import Mapping
from pathlib import Path

import psycopg

from bench.contenders.contract import Contender
from bench.contenders.keryx import KeryxStore
from bench.postgres import ADDRESS_FILE
from keryx import __version__


class PostgresStore(KeryxStore):
    """The same library with another address."""

    def address(self, root: Path) -> str:
        return (root / ADDRESS_FILE).read_text(encoding="utf-8")

    def facts(self) -> Mapping[str, str]:
        names = ("server_version", "fsync", "synchronous_commit")
        with psycopg.connect(self.address(self._root)) as connection:
            version, *durable = [
                (connection.execute(f"SHOW {name}").fetchone() or ("",))[0] for name in names
            ]
        return {
            "version": f"Keryx {__version__} on PostgreSQL {version}",
            "durable": ", ".join(f"{name}={value}" for name, value in zip(names[1:], durable, strict=True)),
        }


def make() -> Contender:
    """Return the contender."""
    return PostgresStore()
