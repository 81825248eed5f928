"""The source of a message: platform, chat, thread and author.

An adapter reports a ``Source`` unverified: its names and topics are strangers' text and never part of a key. Ids
keep the platform's spelling.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Literal, Self, cast, get_args

from keryx.errors import InvalidValue
from keryx.values import dataclass

ChatType = Literal["dm", "group", "channel", "thread"]
CHAT_TYPES: tuple[ChatType, ...] = get_args(ChatType)

_PLATFORM = re.compile(r"[a-z][a-z0-9_-]{0,31}")
# These words have another meaning in session keys and routes, where a platform's name may stand.
_RESERVED_PLATFORMS = frozenset({"person", "origin", "all"})
_IDS = ("account", "user_id", "thread_id", "user_id_alt", "chat_id_alt")
_ID_BYTES_MAX = 512
"""Four escaped ids fit into an index entry of PostgreSQL: 2,704 bytes."""
ONE_SHOT_PREFIX = "print-"
"""The prefix of the account of a one-shot source."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def check_platform(name: str) -> str:
    """Return ``name`` if it is a valid name for a platform, else raise ``InvalidValue``."""
    if not _PLATFORM.fullmatch(name):
        raise InvalidValue(
            f"platform {name!r}: use at most 32 lower-case letters, digits, '-' and '_', beginning with a letter"
        )
    if name in _RESERVED_PLATFORMS:
        raise InvalidValue(f"platform {name!r}: this word is reserved; choose another name")
    return name


def check_known_platform(name: str, known: Collection[str] | None, *others: str) -> str:
    """Return the name of a platform among ``known``, or raise ``InvalidValue`` with the nearest one.

    Where ``known`` is None, any name will do. The nearest name may be one of ``others``.
    """
    check_platform(name)
    if known is not None and name not in known:
        names = [*sorted(known), *others]
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(names)}"
        raise InvalidValue(f"there is no platform {name!r}; {hint}")
    return name


def check_chat_type(value: str) -> ChatType:
    """Return ``value`` if it is a chat type, else raise ``InvalidValue``."""
    if value not in CHAT_TYPES:
        raise InvalidValue(f"chat_type {value!r}: use one of {', '.join(CHAT_TYPES)}")
    return value


def check_id(name: str, value: str | None) -> None:
    """Raise ``InvalidValue`` for an id with a NUL or a surrogate, which no database stores faithfully."""
    if value is not None and _UNSTORABLE.search(value):
        raise InvalidValue(f"{name} {value[:80]!r} holds a NUL or half a character: no platform's id does")


def check_id_length(name: str, value: str | None) -> None:
    """Raise ``InvalidValue`` for an id that is too long for an index; it must have passed ``check_id``."""
    if value is None:
        return
    length = len(value.encode()) + 2 * sum(map(value.count, ":@%"))
    if length > _ID_BYTES_MAX:
        raise InvalidValue(
            f"{name} {value[:80]!r}… is too long: an id may have {_ID_BYTES_MAX} bytes, of which ':', '@' and '%' "
            "take three each"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One chat (and thread, and author) on one platform, reached through one of our accounts."""

    platform: str
    chat_id: str
    chat_type: ChatType
    account: str | None = None
    chat_name: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    thread_id: str | None = None
    chat_topic: str | None = None
    user_id_alt: str | None = None
    chat_id_alt: str | None = None
    message_id: str | None = None
    reply_to: str | None = None

    def __post_init__(self) -> None:
        check_platform(self.platform)
        check_chat_type(self.chat_type)
        if not self.chat_id:
            raise InvalidValue("chat_id is empty: give the platform's id of the chat")
        for name in _IDS:
            # An empty id would be a second spelling of "none", and so give a second key.
            if getattr(self, name) == "":
                raise InvalidValue(f"{name} is empty: leave it out when there is none")
        for name in ("chat_id", *_IDS):
            check_id(name, getattr(self, name))
        if self.chat_type == "thread" and self.thread_id is None:
            raise InvalidValue("chat_type 'thread' needs a thread_id")

    def describe(self) -> str:
        """Return one line that describes the chat to people; it may contain strangers' text."""
        if self.platform == "local":
            return (
                "CLI terminal" if self.chat_id == "cli" else f"local: {_first(self.chat_name, self.chat_id)}"
            )
        if self.chat_type == "dm":
            place = f"DM with {_first(self.user_name, self.chat_name, self.user_id, self.chat_id)}"
        elif self.chat_type == "group":
            place = f"group: {_first(self.chat_name, self.chat_id)}"
        else:
            place = f"channel: {_first(self.chat_name, self.chat_id)}"
        return place if self.thread_id is None else f"{place}, thread: {_first(self.thread_id)}"

    def check_lengths(self) -> None:
        """Raise ``InvalidValue`` if an id is too long for an index."""
        for name in ("chat_id", *_IDS):
            check_id_length(name, getattr(self, name))

    @property
    def is_one_shot(self) -> bool:
        """Whether the source exists for a single answer."""
        return self.platform == "local" and (self.account or "").startswith(ONE_SHOT_PREFIX)

    @property
    def durable(self) -> "Source":
        """The source for later output: the terminal for a one-shot source, else this source."""
        return LOCAL_CLI if self.is_one_shot else self

    def to_dict(self) -> dict[str, str]:
        """Return the fields that are set, as strings; ``from_dict`` is the inverse."""
        return {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Read the result of ``to_dict`` of any version: unknown keys are ignored, a missing key means none."""
        known: dict[str, str] = {}
        for name in _FIELDS:
            value = data.get(name)
            if value is None:
                continue
            if not isinstance(value, str):
                raise InvalidValue(f"source field {name} is a {type(value).__name__}: it must be a string")
            known[name] = value
        for name in ("platform", "chat_id", "chat_type"):
            if name not in known:
                raise InvalidValue(f"source has no {name}: give it, because it identifies the chat")
        return cls(**cast(dict[str, ChatType], known))


_FIELDS = tuple(field.name for field in fields(Source))
LOCAL_CLI = Source(platform="local", chat_id="cli", chat_type="dm")
"""The terminal on this machine."""


def one_shot_source(token: str) -> Source:
    """Return a source on this machine for a single answer, which no terminal shows; ``token`` must be unique."""
    return replace(LOCAL_CLI, account=f"{ONE_SHOT_PREFIX}{token}")


def _first(*names: str | None) -> str:
    """Return the first name with visible text, on one line; the last one is an id and always has some."""
    shown = (" ".join(name.split()) for name in names if name is not None)
    return next((name for name in shown if name), "?")
