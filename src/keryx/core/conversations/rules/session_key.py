"""Decide which conversation a message belongs to.

Equal keys mean the same current session. So a key contains only ids, never names, and every part is escaped: two
sources that the scope separates never have the same key.
"""

import re
from typing import Final, Literal, NewType, get_args

from keryx.core.conversations.rules.source import Source, check_platform
from keryx.errors import InvalidValue
from keryx.values import dataclass

SessionKey = NewType("SessionKey", str)

DmScope = Literal["chat", "platform", "person"]
GroupScope = Literal["chat", "user"]
ThreadScope = Literal["shared", "user"]

_SPECIAL = re.compile(r"[%:@]")
_ESCAPES = {"%": "%25", ":": "%3A", "@": "%40"}
_ESCAPED = re.compile(r"%(?:25|3A|40)")
_WRONG = re.compile(r"%(?!25|3A|40)|[:@]")


SCHEDULE: Final = "schedule"
"""The platform of sessions that belong to a schedule. No person speaks there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSettings:
    """Which messages share a conversation, for each type of chat."""

    dm: DmScope = "chat"
    group: GroupScope = "chat"
    thread: ThreadScope = "shared"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("dm", self.dm, get_args(DmScope)),
            ("group", self.group, get_args(GroupScope)),
            ("thread", self.thread, get_args(ThreadScope)),
        ):
            if value not in known:
                raise InvalidValue(f"scope.{name} {value!r}: use one of {', '.join(known)}")


def key_for(
    source: Source,
    scope: ScopeSettings,
    *,
    profile: str = "main",
    first_account: str | None = None,
    person_id: int | None = None,
) -> SessionKey:
    """Return the key of the conversation of ``source``.

    The caller must have resolved aliases in the source. ``first_account`` is the platform's first bot; its keys, and
    those of a source without an account, contain no account. ``person_id`` is the linked person, if any. Without a
    person, scope ``person`` acts as ``chat``; without a user id, scope ``user`` acts as ``chat``. The scope does not
    apply to a one-shot source or a schedule: each has its own key.
    """
    if not profile:
        raise InvalidValue("profile is empty: give its name, or 'main' for the default profile")
    if source.is_one_shot or source.platform == SCHEDULE:
        scope = ScopeSettings()
    head = f"agent:{escape_part(profile)}"
    if source.chat_type == "dm" and scope.dm == "person" and person_id is not None:
        return SessionKey(f"{head}:person:{person_id}")
    surface = format_surface(source.platform, None if source.account == first_account else source.account)
    ids = [escape_part(part) for part in _parts(source, scope) if part is not None]
    return SessionKey(":".join([head, surface, source.chat_type, *ids]))


def _parts(source: Source, scope: ScopeSettings) -> tuple[str | None, ...]:
    if source.chat_type == "dm":
        return () if scope.dm == "platform" else (source.chat_id,)
    if source.chat_type == "thread":
        return (source.chat_id, source.thread_id, source.user_id if scope.thread == "user" else None)
    return (source.chat_id, source.user_id if scope.group == "user" else None)


def escape_part(text: str) -> str:
    """Return ``text`` with ``:``, ``@`` and ``%`` percent-escaped."""
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], text)


def unescape_part(text: str) -> str:
    """Return the original of an escaped ``text``, or raise ``InvalidValue`` if ``escape_part`` never writes it."""
    if _WRONG.search(text):
        raise InvalidValue(
            f"{text!r}: ':', '@' and '%' must be written as %3A, %40 and %25, and nothing else escaped"
        )
    return _ESCAPED.sub(lambda found: chr(int(found[0][1:], 16)), text)


def format_surface(platform: str, account: str | None) -> str:
    """Return ``<platform>[@<account>]``, escaped."""
    return escape_part(platform) if account is None else f"{escape_part(platform)}@{escape_part(account)}"


def parse_surface(text: str) -> tuple[str, str | None]:
    """Return the platform and the account that ``format_surface`` wrote, or raise ``InvalidValue``."""
    platform, at, account = text.partition("@")
    if at and not account:
        raise InvalidValue(f"{text!r}: an account must follow the '@'")
    return check_platform(unescape_part(platform)), unescape_part(account) if at else None


def is_chat_key(key: str) -> bool:
    """Return whether a key names one chat. A key of a person or a whole platform names no place to send a copy to."""
    _agent, _profile, _surface, _kind, *parts = key.split(":")
    return bool(parts)
