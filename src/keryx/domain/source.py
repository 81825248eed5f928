"""Where a message came from.

A ``Source`` is what an adapter reports, unjudged: names and topics in it are strangers' text and are never part of
a key. Ids are kept as the platform spells them.
"""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Final, Literal, Self, cast, get_args

from keryx.errors import InvalidValue
from keryx.values import dataclass

ChatType = Literal["dm", "group", "channel", "thread"]
CHAT_TYPES: tuple[ChatType, ...] = get_args(ChatType)

PLATFORMS: Final = (
    *("local", "web", "api", "webhook"),
    *("telegram", "discord", "slack", "whatsapp", "signal", "matrix", "email"),
)
"""What a person may name, also before there is an adapter for it."""
_PLATFORM = re.compile(r"[a-z][a-z0-9_-]{0,31}")
# They mean something else where a platform's name may stand: in a session key, in a route.
_RESERVED_PLATFORMS = frozenset({"person", "origin", "all"})
_IDS = ("account", "user_id", "thread_id", "user_id_alt", "chat_id_alt")
_ID_BYTES_MAX = 512
"""Four of them, as a key spells them, fit into what PostgreSQL keeps in an index: 2,704 bytes."""
PASSING = "print-"
"""How the account of a place begins that is there for one answer."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def check_platform(name: str) -> str:
    """Return ``name`` if a platform may be called so, else raise ``InvalidValue``."""
    if not _PLATFORM.fullmatch(name):
        raise InvalidValue(
            f"platform {name!r}: use at most 32 lower-case letters, digits, '-' and '_', beginning with a letter"
        )
    if name in _RESERVED_PLATFORMS:
        raise InvalidValue(f"platform {name!r}: this word is reserved; choose another name")
    return name


def check_known_platform(name: str, *others: str) -> str:
    """Return a platform's name, or raise ``InvalidValue`` with the nearest one, or the nearest of ``others``."""
    check_platform(name)
    if name not in PLATFORMS:
        near = get_close_matches(name, (*PLATFORMS, *others), n=1)
        hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join((*PLATFORMS, *others))}"
        raise InvalidValue(f"there is no platform {name!r}; {hint}")
    return name


def check_chat_type(value: str) -> ChatType:
    """Return ``value`` if it is a chat type, else raise ``InvalidValue``."""
    if value not in CHAT_TYPES:
        raise InvalidValue(f"chat_type {value!r}: use one of {', '.join(CHAT_TYPES)}")
    return value


def check_id(name: str, value: str | None) -> None:
    """Raise ``InvalidValue`` for an id with characters that no database keeps apart from others."""
    if value is not None and _UNSTORABLE.search(value):
        raise InvalidValue(f"{name} {value[:80]!r} holds a NUL or half a character: no platform's id does")


def check_id_length(name: str, value: str | None) -> None:
    """Raise ``InvalidValue`` for an id that is too long to be looked up by; it must have passed ``check_id``."""
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
    """One chat (and thread, and author) on one platform, seen through one of our accounts."""

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
            # An empty id would make a second spelling of "none", and so a second key.
            if getattr(self, name) == "":
                raise InvalidValue(f"{name} is empty: leave it out when there is none")
        for name in ("chat_id", *_IDS):
            check_id(name, getattr(self, name))
        if self.chat_type == "thread" and self.thread_id is None:
            raise InvalidValue("chat_type 'thread' needs a thread_id")

    def describe(self) -> str:
        """Say in one line, for people, where this is; it may contain strangers' text."""
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
        """Raise ``InvalidValue`` if an id in it is too long to be looked up by."""
        for name in ("chat_id", *_IDS):
            check_id_length(name, getattr(self, name))

    @property
    def is_passing(self) -> bool:
        """Whether this place is there for one answer, and then nobody reads it any more."""
        return self.platform == "local" and (self.account or "").startswith(PASSING)

    @property
    def lasting(self) -> "Source":
        """The place that is still there later: for a passing one, the terminal."""
        return LOCAL_CLI if self.is_passing else self

    def to_dict(self) -> dict[str, str]:
        """Return what is known as plain strings; ``from_dict`` is the inverse."""
        return {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Read what ``to_dict`` made, by this version or another: unknown keys are ignored, absent means none."""
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
                raise InvalidValue(f"source has no {name}: it cannot be told which chat this is")
        return cls(**cast(dict[str, ChatType], known))


_FIELDS = tuple(field.name for field in fields(Source))
LOCAL_CLI = Source(platform="local", chat_id="cli", chat_type="dm")
"""The terminal on this machine."""


def passing_place(token: str) -> Source:
    """Return a place on this machine for one answer, which no terminal shows; ``token`` is nobody else's."""
    return replace(LOCAL_CLI, account=f"{PASSING}{token}")


def _first(*names: str | None) -> str:
    """Return the first name that shows something, on one line; the last one is an id and always does."""
    shown = (" ".join(name.split()) for name in names if name is not None)
    return next((name for name in shown if name), "?")
