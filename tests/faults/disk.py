"""A disk that runs full, fails, or loses power, as a layer between SQLite and the real files.

It records every operation in order, so that a test can compute the files after a power cut at any operation.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal

import apsw

_names = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation on a file, or a mark of the test."""

    kind: Literal["read", "write", "truncate", "sync", "delete", "mark"]
    file: str
    offset: int = 0
    data: bytes = b""


@dataclass(slots=True)
class _Image:
    """The content of one file that is surely on disk, and the writes that may be."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Operation] = field(default_factory=list)

    def settle(self, keep: Callable[[], bool]) -> None:
        for operation in self.pending:
            if keep():
                _apply(self.durable, operation)
        self.pending.clear()


class Disk(apsw.VFS):
    """A file layer with its own name, which ``SqliteDatabase.open`` takes."""

    def __init__(self) -> None:
        self.name = f"disk-{next(_names)}"
        super().__init__(self.name, "")
        self.log: list[Operation] = []
        self.failed = threading.Event()
        self._lock = threading.RLock()
        self._fault: Callable[[str, str], apsw.Error | None] = lambda _kind, _file: None

    def xOpen(self, name: Any, flags: Any) -> "DiskFile":  # noqa: N802 - SQLite's name
        return DiskFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: Any) -> None:  # noqa: N802 - SQLite's name
        with self._lock:
            super().xDelete(filename, syncdir)
            self.log.append(Operation(kind="delete", file=Path(filename).name))

    def break_at(
        self, number: int, error: type[apsw.Error], *, kind: str = "write", file: str = "", once: bool = False
    ) -> None:
        """Let operations of this kind fail from the ``number``-th from now on, in one file or in all files."""
        counted = count(1)

        def fault(happens: str, where: str) -> apsw.Error | None:
            if happens != kind or file not in ("", where):
                return None
            now = next(counted)
            return error("planted") if now == number or (now > number and not once) else None

        with self._lock:
            self.failed.clear()
            self._fault = fault

    def heal(self) -> None:
        """Let all operations succeed again."""
        with self._lock:
            self._fault = lambda _kind, _file: None

    def mark(self, text: str) -> None:
        """Add a mark of the test to the log."""
        with self._lock:
            self.log.append(Operation(kind="mark", file=text))

    def do(self, operation: Operation, action: Callable[[], Any]) -> Any:
        """Carry out an operation and record it, or fail as planned."""
        with self._lock:
            error = self._fault(operation.kind, operation.file)
            if error is not None:
                self.failed.set()
                raise error
            result = action()
            if operation.kind != "read":
                self.log.append(operation)
            return result

    def count(self, kind: str, *, file: str = "") -> int:
        """Return the number of operations of this kind, in one file or in all files."""
        with self._lock:
            return sum(operation.kind == kind and file in ("", operation.file) for operation in self.log)


class DiskFile(apsw.VFSFile):
    """One open file of a ``Disk``."""

    def __init__(self, disk: Disk, name: Any, flags: Any) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._file = Path(path).name if path else "temporary"

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        read: bytes = self._disk.do(
            Operation(kind="read", file=self._file), lambda: super(DiskFile, self).xRead(amount, offset)
        )
        return read

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - SQLite's name
        operation = Operation(kind="write", file=self._file, offset=offset, data=bytes(data))
        self._disk.do(operation, lambda: super(DiskFile, self).xWrite(data, offset))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        operation = Operation(kind="truncate", file=self._file, offset=newsize)
        self._disk.do(operation, lambda: super(DiskFile, self).xTruncate(newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.do(Operation(kind="sync", file=self._file), lambda: super(DiskFile, self).xSync(flags))


def images(
    log: list[Operation], cuts: set[int], keep: Callable[[], bool]
) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Yield the contents of the files after a power cut before each of ``cuts``.

    Writes after a file's last sync may be lost: ``keep`` decides for each write.
    """
    files: dict[str, _Image] = {}
    for place, operation in enumerate(log):
        if place in cuts:
            yield place, _after_cut(files, keep)
        image = files.setdefault(operation.file, _Image()) if operation.kind != "mark" else None
        if image is None:
            continue
        if operation.kind == "sync":
            image.settle(lambda: True)
        elif operation.kind == "delete":
            del files[operation.file]
        else:
            image.pending.append(operation)


def _after_cut(files: dict[str, _Image], keep: Callable[[], bool]) -> dict[str, bytes]:
    after = {}
    for name, image in files.items():
        copy = _Image(durable=image.durable.copy(), pending=image.pending.copy())
        copy.settle(keep)
        after[name] = bytes(copy.durable)
    return after


def _apply(content: bytearray, operation: Operation) -> None:
    if operation.kind == "truncate":
        del content[operation.offset :]
        return
    end = operation.offset + len(operation.data)
    content.extend(bytes(max(0, end - len(content))))
    content[operation.offset : end] = operation.data
