"""Faults injected into a store: the process dies right before a chosen statement.

``Crash`` is not an ``Exception``, so no error handler catches it. The result is the same as for a dead process: a
transaction that never committed.
"""

import os


class Crash(BaseException):
    """The process died here, from the transaction's point of view."""


class FaultHook:
    """A store's hook that records every statement, and dies before a chosen one."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._crash_at: int | None = None
        self._kill = False

    def __call__(self, name: str) -> None:
        """Record a statement that is about to run; die if it is the chosen one."""
        self.seen.append(name)
        if len(self.seen) != self._crash_at:
            return
        if self._kill:
            os._exit(9)
        raise Crash(f"before statement {self._crash_at}, {name}")

    def crash_before(self, number: int) -> None:
        """Raise ``Crash`` before the ``number``-th statement from now on, counted from 1."""
        self._arm(number, kill=False)

    def kill_before(self, number: int) -> None:
        """End this process without cleanup before the ``number``-th statement from now on."""
        self._arm(number, kill=True)

    def disarm(self) -> list[str]:
        """Let every statement run from now on; return the statements seen since the last call."""
        seen, self.seen, self._crash_at = self.seen, [], None
        return seen

    def _arm(self, number: int, *, kill: bool) -> None:
        self.disarm()
        self._crash_at, self._kill = number, kill
