"""From what was written to a value: the same for a file, a variable and ``keryx config set``.

Whatever the source, a value arrives as text, as a list of texts, or as None for YAML's null; a reader returns the value
or raises ``InvalidValue`` with a sentence that says what to write. It never repeats what could hold a secret.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

from keryx.domain.model_name import check_model_name
from keryx.domain.person import Role, check_role
from keryx.domain.prices import Price, parse_price
from keryx.domain.source import CHAT_TYPES, ChatType, check_chat_type, check_id, check_known_platform
from keryx.domain.toolset import check_toolset
from keryx.domain.zone import zone_of
from keryx.errors import InvalidValue

T = TypeVar("T")
Raw = str | tuple[str, ...] | None
Reader = Callable[[Raw], T]

NONE = "none"
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_STORE = re.compile(r"(postgres|postgresql|sqlite)://")
_PASSWORD = re.compile(r"(?<=://)([^:/?#@]*):.*(?=@)|(?<=password=)[^&]*")
_HOST = re.compile(r"[\w.:-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SERVER_NAME = re.compile(r"[a-z][a-z0-9_-]{0,23}")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def text(raw: Raw) -> str:
    """Read any text that says something."""
    if isinstance(raw, tuple):
        raise InvalidValue("a list is given; write one text")
    if raw is None or not raw.strip():
        raise InvalidValue("the value is empty; write one, or remove the line")
    if _CONTROL.search(raw):
        raise InvalidValue("the text holds control characters; write it without them")
    return raw


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


def platforms(raw: Raw) -> tuple[str, ...]:
    """Read a list of platforms; a text is split at its commas, and `none` is none."""
    if raw is None or raw == NONE:
        return ()
    given = raw if isinstance(raw, tuple) else raw.split(",")
    return tuple(dict.fromkeys(check_known_platform(name.strip()) for name in given if name.strip()))


def model_name(raw: Raw) -> str:
    """Read the name of a model, ``provider:name``."""
    return check_model_name(text(raw))


def model_names(raw: Raw) -> tuple[str, ...]:
    """Read a list of models; a text is split at its commas, and `none` is none."""
    if raw is None or raw == NONE:
        return ()
    given = raw if isinstance(raw, tuple) else raw.split(",")
    return tuple(dict.fromkeys(model_name(name.strip()) for name in given if name.strip()))


def price(raw: Raw) -> Price | None:
    """Read what a model's tokens cost: a list, or a text that is split at its commas; `none` is none."""
    if raw is None or raw == NONE:
        return None
    given = raw if isinstance(raw, tuple) else raw.split(",")
    return parse_price(tuple(amount.strip() for amount in given))


def toolsets(raw: Raw) -> tuple[str, ...]:
    """Read a list of sets of tools; a text is split at its commas, and `none` is none."""
    if raw is None or raw == NONE:
        return ()
    given = raw if isinstance(raw, tuple) else raw.split(",")
    return tuple(dict.fromkeys(check_toolset(name.strip()) for name in given if name.strip()))


def hosts(raw: Raw) -> tuple[str, ...]:
    """Read a list of hosts, in small letters; a text is split at its commas, and `none` is none."""
    return tuple(dict.fromkeys(_host(name) for name in _names(raw)))


def variables(raw: Raw) -> tuple[str, ...]:
    """Read a list of environment variables; a text is split at its commas, and `none` is none."""
    for name in _names(raw):
        if not _VARIABLE.fullmatch(name):
            raise InvalidValue(f"{name!r} is no variable; write its name alone, such as GITHUB_TOKEN")
    return tuple(dict.fromkeys(_names(raw)))


def _names(raw: Raw) -> list[str]:
    if raw is None or raw == NONE:
        return []
    given = raw if isinstance(raw, tuple) else raw.split(",")
    return [name.strip() for name in given if name.strip()]


def _host(name: str) -> str:
    if not _HOST.fullmatch(name):
        raise InvalidValue(f"{name!r} is no host; write its name or address alone, such as nas.local")
    return name.lower()


def toolset(raw: Raw) -> str:
    """Read the name of one set of tools."""
    return check_toolset(text(raw))


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
        if _CONTROL.search(each) or "\n" in each:
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


def store_address(raw: Raw) -> str:
    """Read the path or the address of a store."""
    given = text(raw)
    if "://" in given and not _STORE.match(given):
        raise InvalidValue("this is no store; write a path, sqlite:///path or postgresql://host/name")
    return given


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


def without_password(address: str) -> str:
    """Return an address of a store as it may be shown."""
    return _PASSWORD.sub(lambda match: "***" if match[1] is None else f"{match[1]}:***", address)


def reset_place(chosen: str) -> tuple[str | None, ChatType | None]:
    """Split what stands under ``reset.on`` into platform and chat type; raise ``InvalidValue`` for neither."""
    platform, colon, chat_type = chosen.partition(":")
    if not colon and chosen in CHAT_TYPES:
        return None, check_chat_type(chosen)
    check_known_platform(platform, *(() if colon else CHAT_TYPES))
    return platform, check_chat_type(chat_type) if colon else None


def busy_place(chosen: str) -> tuple[str, str | None]:
    """Split what stands under ``busy.on`` into platform and chat; raise ``InvalidValue`` for anything else."""
    platform, colon, chat = chosen.partition(":")
    check_known_platform(platform)
    if colon and not chat:
        raise InvalidValue(f"{chosen!r} names no chat; write the platform's id of it behind the colon")
    check_id("chat", chat)
    return platform, chat if colon else None


def toolset_place(chosen: str) -> tuple[str | None, Role]:
    """Split what stands under ``toolsets`` into platform (None: every one) and role, or raise ``InvalidValue``."""
    platform, colon, role = chosen.rpartition(":")
    return check_known_platform(platform) if colon else None, check_role(role)


def server_name(chosen: str) -> str:
    """Return a name that can begin the names of tools, or raise ``InvalidValue``."""
    if not _SERVER_NAME.fullmatch(chosen):
        raise InvalidValue(
            f"the server's name {chosen[:40]!r}: use a letter, then at most 23 lower-case letters, digits, '-' and '_'"
        )
    return chosen


def personality_name(chosen: str) -> str:
    """Return a name that ``/personality`` can be told in one word, or raise ``InvalidValue``."""
    if chosen.split() != [chosen] or _CONTROL.search(chosen):
        raise InvalidValue(f"the personality's name {chosen!r} must be one word")
    return chosen
