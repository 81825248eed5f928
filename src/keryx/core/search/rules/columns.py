"""The columns of a segment: message id, time and length of each document, packed in chunks of fixed-width numbers."""

import struct
from array import array
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from keryx.core.search.rules.index_format import DAMAGED
from keryx.errors import StoreCorrupt

_CODES: Final[dict[int, tuple[Literal["I", "Q"], int]]] = {ord("I"): ("I", 4), ord("Q"): ("Q", 8)}
_LENGTH_SIZE: Final = array("H").itemsize
_BASES: Final = struct.Struct("<qqBB")


class DocumentColumns(NamedTuple):
    """The message id of each document (of a session card: minus its number), its time and its length in words."""

    ids: Sequence[int]
    times: Sequence[int]
    lengths: Sequence[int]


def pack_columns(columns: DocumentColumns) -> bytes:
    """Return one packed chunk of columns."""
    ids, id_code = _offsets(columns.ids)
    times, time_code = _offsets(columns.times)
    lengths = array("H", columns.lengths)
    head = _BASES.pack(min(columns.ids), min(columns.times), ord(id_code), ord(time_code))
    return head + ids + times + lengths.tobytes()


def join_columns(chunks: Iterable["ColumnChunk"]) -> DocumentColumns:
    """Return the columns of consecutive chunks as one."""
    ids: list[int] = []
    times: list[int] = []
    lengths: list[int] = []
    for chunk in chunks:
        columns = chunk.columns()
        ids.extend(columns.ids)
        times.extend(columns.times)
        lengths.extend(columns.lengths)
    return DocumentColumns(ids, times, lengths)


class ColumnChunk:
    """A chunk of columns that was read; single documents are read from the bytes."""

    __slots__ = ("_id_base", "_ids", "_time_base", "_times", "lengths")

    lengths: memoryview
    """The number of words of each document."""

    def __init__(self, data: bytes) -> None:
        try:
            self._id_base, self._time_base, id_code, time_code = _BASES.unpack_from(data)
            (id_format, id_size), (time_format, time_size) = _CODES[id_code], _CODES[time_code]
            count = (len(data) - _BASES.size) // (id_size + time_size + _LENGTH_SIZE)
            times_at = _BASES.size + count * id_size
            lengths_at = times_at + count * time_size
            view = memoryview(data)
            self._ids = view[_BASES.size : times_at].cast(id_format)
            self._times = view[times_at:lengths_at].cast(time_format)
            self.lengths = view[lengths_at:].cast("H")
        except (struct.error, KeyError, TypeError) as damage:
            raise StoreCorrupt(DAMAGED) from damage

    def key(self, index: int) -> tuple[int, int]:
        """Return (time, id) of one document: the key that orders documents."""
        return self._time_base + self._times[index], self._id_base + self._ids[index]

    def columns(self) -> DocumentColumns:
        """Return all documents of the chunk."""
        return DocumentColumns(
            [self._id_base + each for each in self._ids],
            [self._time_base + each for each in self._times],
            self.lengths.tolist(),
        )


def _offsets(numbers: Sequence[int]) -> tuple[bytes, str]:
    base = min(numbers)
    code = "I" if max(numbers) - base < 1 << 32 else "Q"
    return array(code, [each - base for each in numbers]).tobytes(), code
