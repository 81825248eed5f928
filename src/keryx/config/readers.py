"""Read the value of a setting, in the same way from a file, a variable and ``keryx config set``.

A raw value is a text, a list of texts, or None for YAML's null. A reader returns the value or raises ``InvalidValue``
with a message that says what to write. The message never repeats a text that could contain a secret.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

from keryx.core.values.time_zone import zone_of
from keryx.errors import InvalidValue

T = TypeVar("T")
Raw = str | tuple[str, ...] | None
Reader = Callable[[Raw], T]

NONE = "none"
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def text(raw: Raw) -> str:
    """Read any text that is not empty."""
    if isinstance(raw, tuple):
        raise InvalidValue("this is a list; write one text")
    if raw is None or not raw.strip():
        raise InvalidValue("the value is empty; write a value, or remove the line")
    if CONTROL.search(raw):
        raise InvalidValue("the text contains control characters; remove them")
    return raw


def checked(check: Callable[[str], T]) -> Reader[T]:
    """Read a text that ``check`` accepts."""
    return lambda raw: check(text(raw))


def optional(reader: Reader[T]) -> Reader[T | None]:
    """Read the word ``none`` and an empty value as None, and other values with ``reader``."""

    def read(raw: Raw) -> T | None:
        return None if raw is None or raw == NONE else reader(raw)

    return read


def one_of(known: Sequence[T]) -> Reader[T]:
    """Read one of a few words."""

    def read(raw: Raw) -> T:
        given = text(raw)
        if given not in known:
            raise InvalidValue(f"{given!r} is not known; use one of {', '.join(map(str, known))}")
        return known[known.index(given)]

    return read


def whole(low: int, high: int) -> Reader[int]:
    """Read a whole number within bounds."""

    def read(raw: Raw) -> int:
        given = text(raw)
        if not _NUMBER.fullmatch(given) or not low <= int(given) <= high:
            raise InvalidValue(f"{given!r} is not valid; write a whole number from {low} to {high}")
        return int(given)

    return read


def flag(raw: Raw) -> bool:
    """Read yes or no."""
    given = text(raw).lower()
    if given not in _TRUE | _FALSE:
        raise InvalidValue(f"{given!r} is not valid; write true or false")
    return given in _TRUE


def zone(raw: Raw) -> str:
    """Read the name of an IANA time zone."""
    given = text(raw)
    zone_of(given)
    return given


def items(raw: Raw) -> list[str]:
    """Return the items of a list; a text is split at its commas, and `none` is an empty list."""
    if raw is None or raw == NONE:
        return []
    given = raw if isinstance(raw, tuple) else raw.split(",")
    return [item.strip() for item in given if item.strip()]


def list_of(check: Callable[[str], T]) -> Reader[tuple[T, ...]]:
    """Read a list of items that ``check`` accepts, without repetitions."""
    return lambda raw: tuple(dict.fromkeys(map(check, items(raw))))


def command_line(raw: Raw) -> tuple[str, ...]:
    """Read a program and its arguments: a list, or a text that is split as in a shell; `none` is empty."""
    if not raw or raw == NONE:
        return ()
    try:
        words = raw if isinstance(raw, tuple) else tuple(shlex.split(text(raw)))
    except ValueError as error:
        raise InvalidValue("a quote is not closed; close it, or write a list") from error
    if not words or not words[0].strip():
        raise InvalidValue("the program is missing; write the program, then its arguments")
    return words


def pairs(raw: Raw) -> tuple[str, ...]:
    """Read names with values; `none` is empty. A message does not repeat a value: it may be a secret."""
    if raw is None or raw == NONE:
        return ()
    given = raw if isinstance(raw, tuple) else (raw,)
    for number, each in enumerate(given, start=1):
        if not each.partition("=")[0].strip() or "=" not in each:
            raise InvalidValue(f"entry {number} has no name; write NAME: value, or NAME=value in a list")
        if CONTROL.search(each) or "\n" in each:
            raise InvalidValue(f"entry {number} contains control characters; remove them")
    return given


def pairs_of(reader: Reader[object]) -> Reader[tuple[str, ...]]:
    """Read names with values that ``reader`` accepts."""

    def read(raw: Raw) -> tuple[str, ...]:
        given = pairs(raw)
        for each in given:
            reader(each.partition("=")[2])
        return given

    return read


def web_address(raw: Raw) -> str:
    """Read an HTTP address without user and password."""
    given = text(raw)
    try:
        url = urlsplit(given)
        plain = url.scheme in ("http", "https") and url.hostname and not url.username and not url.password
        _ = url.port  # raises if the port is not a number
    except ValueError:
        plain = False
    if not plain:
        raise InvalidValue("this is not a web address; write http(s)://host/path, without user and password")
    return given
