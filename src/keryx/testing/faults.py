"""Faults planted in a store: it dies right before a statement of our choice.

``Crash`` is no ``Exception``, so that nothing which answers errors can answer it: what is left is what a dead
process leaves, a transaction that never committed.
"""

import os


class Crash(BaseException):
    """The process died here, as far as the transaction can tell."""


class FaultHook:
    """Given to a store as its hook: notes every statement, and dies before one of them when told to."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._crash_at: int | None = None
        self._kill = False

    def __call__(self, name: str) -> None:
        """Note a statement that is about to run; die if it is the one."""
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
        """End this process, with nothing cleaned up, before the ``number``-th statement from now on."""
        self._arm(number, kill=True)

    def disarm(self) -> list[str]:
        """Let every statement run from now on; return those seen since the last call."""
        seen, self.seen, self._crash_at = self.seen, [], None
        return seen

    def _arm(self, number: int, *, kill: bool) -> None:
        self.disarm()
        self._crash_at, self._kill = number, kill
