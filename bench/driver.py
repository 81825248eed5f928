"""The other end of ``bench.worker``: one contender in its own process.

A worker that dies or answers with an error raises ``WorkerError`` with the place of its log; nothing else goes wrong
silently.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.environments import interpreter

REPOSITORY = Path(__file__).resolve().parent.parent
Result = dict[str, Any]


class WorkerError(Exception):
    """A contender could not do what it was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where the benchmark keeps things, and what it feeds the contenders."""

    folder: Path
    corpus: Path


class Worker:
    """A running contender. Ask it one thing at a time, or ``send`` to several and then ``receive`` from each."""

    def __init__(self, place: str, bench: Bench) -> None:
        """Start the contender of *place*, which is ``contender@store``; its store is not opened yet."""
        self.contender, _, self.store = place.partition("@")
        contender = self.contender
        self._log = bench.folder / f"{contender}.log"
        self._log_file = self._log.open("a", encoding="utf-8")
        path = os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "src")))
        self._process = subprocess.Popen(
            [interpreter(contender, bench.folder), "-m", "bench.worker", contender, bench.corpus],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log_file,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def ask(self, operation: str, **arguments: object) -> Result | None:
        """Do *operation* and return its result, or None where the contender offers no such thing."""
        self.send(operation, **arguments)
        return self.receive()

    def send(self, operation: str, **arguments: object) -> None:
        """Start *operation* without waiting for it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": operation, "with": arguments}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise WorkerError(f"{self.contender}@{self.store} has died; {self._log} says why") from error

    def receive(self) -> Result | None:
        """Wait for the operation sent last."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(f"{self.contender}@{self.store} has died; {self._log} says why")
        answer: Result = json.loads(line)
        if "error" in answer:
            raise WorkerError(f"{self.contender}@{self.store}: {answer['error']}; {self._log} says where")
        result: Result | None = answer.get("ok")
        return result

    def stop(self) -> None:
        """End the process; close the store first, or it is as if it had crashed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log_file.close()
