"""From what was written to a value: the same for a file, a variable and ``keryx config set``.

Whatever the source, a value arrives as text, as a list of texts, or as None for YAML's null; a reader returns the value
or raises ``InvalidValue`` with a sentence that says what to write. It never repeats what could hold a secret.
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
"""Characters that no text of a setting holds."""


def text(raw: Raw) -> str:
    """Read any text that says something."""
    if isinstance(raw, tuple):
        raise InvalidValue("a list is given; write one text")
    if raw is None or not raw.strip():
        raise InvalidValue("the value is empty; write one, or remove the line")
    if CONTROL.search(raw):
        raise InvalidValue("the text holds control characters; write it without them")
    return raw


def checked(check: Callable[[str], T]) -> Reader[T]:
    """Read a text that ``check`` takes."""
    return lambda raw: check(text(raw))


def optional(reader: Reader[T]) -> Reader[T | None]:
    """Read what ``reader`` reads, or the word ``none``, or nothing, as None."""

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
            raise InvalidValue(f"{given!r} does not fit; write a whole number from {low} to {high}")
        return int(given)

    return read


def flag(raw: Raw) -> bool:
    """Read yes or no."""
    given = text(raw).lower()
    if given not in _TRUE | _FALSE:
        raise InvalidValue(f"{given!r} is neither; write true or false")
    return given in _TRUE


def zone(raw: Raw) -> str:
    """Read the name of an IANA time zone."""
    given = text(raw)
    zone_of(given)
    return given


def items(raw: Raw) -> list[str]:
    """Return the items of a list; a text is split at its commas, and `none` is none."""
    if raw is None or raw == NONE:
        return []
    given = raw if isinstance(raw, tuple) else raw.split(",")
    return [item.strip() for item in given if item.strip()]


def list_of(check: Callable[[str], T]) -> Reader[tuple[T, ...]]:
    """Read a list of items that ``check`` takes, each once."""
    return lambda raw: tuple(dict.fromkeys(map(check, items(raw))))


def command_line(raw: Raw) -> tuple[str, ...]:
    """Read a program and its arguments: a list, or a text that is split as a shell would; `none` is none."""
    if not raw or raw == NONE:
        return ()
    try:
        words = raw if isinstance(raw, tuple) else tuple(shlex.split(text(raw)))
    except ValueError as error:
        raise InvalidValue("a quote is not closed; close it, or write a list") from error
    if not words or not words[0].strip():
        raise InvalidValue("no program is named; write the program, then its arguments")
    return words


def pairs(raw: Raw) -> tuple[str, ...]:
    """Read names with values; `none` is none. What stands in a value is not repeated: it may be a secret."""
    if raw is None or raw == NONE:
        return ()
    given = raw if isinstance(raw, tuple) else (raw,)
    for number, each in enumerate(given, start=1):
        if not each.partition("=")[0].strip() or "=" not in each:
            raise InvalidValue(f"entry {number} has no name; write NAME: value, or NAME=value in a list")
        if CONTROL.search(each) or "\n" in each:
            raise InvalidValue(f"entry {number} holds control characters; write it without them")
    return given


def pairs_of(reader: Reader[object]) -> Reader[tuple[str, ...]]:
    """Read names with values that ``reader`` takes."""

    def read(raw: Raw) -> tuple[str, ...]:
        given = pairs(raw)
        for each in given:
            reader(each.partition("=")[2])
        return given

    return read


def web_address(raw: Raw) -> str:
    """Read an address that can be posted to."""
    given = text(raw)
    try:
        url = urlsplit(given)
        plain = url.scheme in ("http", "https") and url.hostname and not url.username and not url.password
        _ = url.port  # Raises for one that is no number.
    except ValueError:
        plain = False
    if not plain:
        raise InvalidValue("this cannot be posted to; write http(s)://host/path, without user and password")
    return given
