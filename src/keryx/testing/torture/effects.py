"""What the agents under torture did, written down outside the store, so that no rollback can hide it.

Every process appends whole lines to one file; a line is one write, which the system never mixes with another.
"""

import json
import os
import time
from collections.abc import Container
from dataclasses import asdict
from pathlib import Path
from typing import Literal, TypeAlias

from keryx.values import dataclass

Deed: TypeAlias = Literal["begin", "end", "once", "pure"]
"""A turn began to be answered, its answer was handed over, or a tool ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One line: what was done when by which process, in which turn, for which question, under which key."""

    deed: Deed
    at: float
    """By the clock that all processes of the machine share."""
    pid: int
    turn_id: int
    token: str
    key: str = ""


class EffectBook:
    """The file, for whoever writes or reads it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, deed: Deed, *, turn_id: int, token: str, key: str = "") -> None:
        """Write a line before going on."""
        effect = Effect(
            deed=deed, at=time.monotonic(), pid=os.getpid(), turn_id=turn_id, token=token, key=key
        )
        line = json.dumps(asdict(effect)).encode("ascii") + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def read(self) -> list[Effect]:
        """Return every line so far; a process that was killed has written whole ones or nothing."""
        if not self._path.exists():
            return []
        return [Effect(**json.loads(line)) for line in self._path.read_text(encoding="ascii").splitlines()]


def first_begun(
    effects: list[Effect], tokens: Container[str], *, after: float, other_than: int
) -> float | None:
    """Return when a process other than this one first began to answer one of these questions after a moment."""
    begun = (each for each in effects if each.deed == "begin" and each.pid != other_than)
    return min((each.at for each in begun if each.at >= after and each.token in tokens), default=None)


def open_tokens(effects: list[Effect], *, pid: int) -> list[str]:
    """Return the questions whose answers a process has begun and not handed over."""
    begun = {each.turn_id: each.token for each in effects if each.pid == pid and each.deed == "begin"}
    ended = {each.turn_id for each in effects if each.pid == pid and each.deed == "end"}
    return [token for turn_id, token in begun.items() if turn_id not in ended]
