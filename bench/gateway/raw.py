"""The raw limit: a bare loop that makes as many durable commits a turn as the gateway makes writes.

Nothing but the disk and SQLite is in it. On a machine whose disk has slow minutes, the ratio to it says more than the
number of turns.
"""

import time
from pathlib import Path

import apsw

from bench.contenders.raw import OPTIONS

WRITES_PER_TURN = 5
"""Accept, begin, finish, claim, record: what the gateway makes durable for a turn without tool calls."""
ROW = "x" * 400


def commit_turns(path: Path, *, seconds: float) -> float:
    """Return for how many turns a second one connection makes its commits, each of one row, one after the other."""
    connection = apsw.Connection(str(path))
    for pragma in OPTIONS:
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")
    turns = 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in range(WRITES_PER_TURN):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO rows (text) VALUES (?)", (ROW,))
            connection.execute("COMMIT")
        turns += 1
    took = time.perf_counter() - began
    connection.close()
    return turns / took
