"""The stored output of a process: at most two files, of which the older one is deleted when the newer one is full."""

import os
from contextlib import suppress

from .protocol import OUTPUT


class OutputFiles:
    """Stores output. Every byte is counted, stored or not, and the name of each file tells its position."""

    def __init__(self, bytes_max: int) -> None:
        self.total = 0
        self._half = max(1, bytes_max // 2)
        self._room = 0
        self._names: list[str] = []
        self._file = -1

    def add(self, data: bytes) -> None:
        """Store the data. Data that the disk does not take is counted and lost; it never blocks the process."""
        while data:
            written = len(data)
            try:
                if not self._room:
                    self._begin()
                written = os.write(self._file, data[: self._room])
                self._room -= written
            except OSError:
                self._room = 0
            self.total += written
            data = data[written:]

    def close(self) -> None:
        """Flush the output to the disk, if the disk takes it."""
        if self._file >= 0:
            with suppress(OSError):
                os.fsync(self._file)
            os.close(self._file)
            self._file = -1

    def _begin(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            if os.stat(self._names[-1]).st_size == 0:
                os.unlink(self._names.pop())  # the disk was full
        while len(self._names) > 1:
            os.unlink(self._names.pop(0))
        name = f"{OUTPUT}{self.total:020d}"
        self._file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._names.append(name)
        self._room = self._half
