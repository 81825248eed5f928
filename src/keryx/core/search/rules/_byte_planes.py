"""Arrays of two-byte numbers, stored as all low bytes and all high bytes."""

import re
from array import array
from sys import byteorder
from typing import Final

_LOW: Final = 0 if byteorder == "little" else 1


def split_planes(numbers: "array[int]") -> tuple[bytes, bytes]:
    """Return the low bytes and the high bytes. The high bytes of rising numbers are long runs and compress well."""
    packed = numbers.tobytes()
    return packed[_LOW::2], packed[1 - _LOW :: 2]


def join_planes(low: bytes, high: bytes) -> "array[int]":
    """Return the numbers of two planes."""
    packed = bytearray(2 * len(low))
    packed[_LOW::2] = low
    packed[1 - _LOW :: 2] = high
    numbers = array("H")
    numbers.frombytes(packed)
    return numbers


def narrow_planes(low: bytes, high: bytes, within: tuple[int, int]) -> tuple[bytes, bytes]:
    """Return the planes without most of the numbers outside a range, by a comparison of the high bytes alone."""
    first, last = (re.escape(bytes((number >> 8,))) for number in within)
    runs = [match.span() for match in re.finditer(b"[%b-%b]+" % (first, last), high)]
    return b"".join([low[a:b] for a, b in runs]), b"".join([high[a:b] for a, b in runs])
