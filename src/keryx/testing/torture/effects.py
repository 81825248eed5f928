"""A record of what the agents did, outside the store, so that no rollback can hide it.

Every process appends whole lines to one file. A line is one write, which the operating system never interleaves.
"""

import json
import os
import time
from collections.abc import Container
from dataclasses import asdict
from pathlib import Path
from typing import Literal, TypeAlias

from keryx.values import dataclass

EffectKind: TypeAlias = Literal["begin", "end", "once", "pure"]
"""The agent began a turn, or returned its answer, or a tool ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One line of the record: the kind, its time, process, turn, question and key."""

    kind: EffectKind
    at: float
    """The time on the monotonic clock that all processes of the machine share."""
    pid: int
    turn_id: int
    token: str
    key: str = ""


class EffectLog:
    """The file with the record."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, kind: EffectKind, *, turn_id: int, token: str, key: str = "") -> None:
        """Write a line to the file, then return."""
        effect = Effect(
            kind=kind, at=time.monotonic(), pid=os.getpid(), turn_id=turn_id, token=token, key=key
        )
        line = json.dumps(asdict(effect)).encode("ascii") + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def read(self) -> list[Effect]:
        """Return all lines so far; a killed process has written only whole lines."""
        if not self._path.exists():
            return []
        return [Effect(**json.loads(line)) for line in self._path.read_text(encoding="ascii").splitlines()]


def first_begun(
    effects: list[Effect], tokens: Container[str], *, after: float, other_than: int
) -> float | None:
    """Return the first time after ``after`` when another process began to answer one of these questions, or None."""
    begun = (each for each in effects if each.kind == "begin" and each.pid != other_than)
    return min((each.at for each in begun if each.at >= after and each.token in tokens), default=None)


def open_tokens(effects: list[Effect], *, pid: int) -> list[str]:
    """Return the tokens of the questions that a process has begun to answer and not finished."""
    begun = {each.turn_id: each.token for each in effects if each.pid == pid and each.kind == "begin"}
    ended = {each.turn_id for each in effects if each.pid == pid and each.kind == "end"}
    return [token for turn_id, token in begun.items() if turn_id not in ended]
