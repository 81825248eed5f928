"""Which conversation a message belongs to.

Equal keys mean the same current session, so the key is made of ids only (never of names) and every part is
escaped: two sources that the scope tells apart can never be spelled alike.
"""

import re
from typing import Literal, NewType, get_args

from keryx.domain.source import ChatType, Source, check_chat_type, check_platform
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSettings:
    """What shares a conversation, per kind of chat."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonKey:
    """The key of a linked person's conversation, on whatever platform."""

    profile: str
    person_id: int

    def __str__(self) -> str:
        """Return the printed form; ``parse_key`` is the inverse."""
        return f"agent:{escape_part(self.profile)}:person:{self.person_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatKey:
    """The key of a chat's conversation; ``parts`` are the chat, thread and user, as the scope says."""

    profile: str
    platform: str
    account: str | None
    chat_type: ChatType
    parts: tuple[str, ...]

    def __str__(self) -> str:
        """Return the printed form; ``parse_key`` is the inverse."""
        surface = format_surface(self.platform, self.account)
        head = f"agent:{escape_part(self.profile)}:{surface}:{self.chat_type}"
        return ":".join([head, *map(escape_part, self.parts)])


def key_for(
    source: Source,
    scope: ScopeSettings,
    *,
    profile: str = "main",
    first_account: str | None = None,
    person_id: int | None = None,
) -> SessionKey:
    """Return the key of the conversation ``source`` takes part in.

    Aliases in the source must be resolved already. ``first_account`` is the platform's first bot, whose keys (and
    those of a source without an account) carry no account. ``person_id`` is the linked person, where there is
    one; without it scope ``person`` acts as ``chat``, and without a user id scope ``user`` does. A passing place has a
    key of its own, whatever the scope.
    """
    if not profile:
        raise InvalidValue("profile is empty: give its name, 'main' for the default one")
    key: PersonKey | ChatKey
    if source.is_passing:
        scope = ScopeSettings()
    if source.chat_type == "dm" and scope.dm == "person" and person_id is not None:
        key = PersonKey(profile=profile, person_id=person_id)
    else:
        key = ChatKey(
            profile=profile,
            platform=source.platform,
            account=None if source.account == first_account else source.account,
            chat_type=source.chat_type,
            parts=tuple(part for part in _parts(source, scope) if part is not None),
        )
    return SessionKey(str(key))


def _parts(source: Source, scope: ScopeSettings) -> tuple[str | None, ...]:
    if source.chat_type == "dm":
        return () if scope.dm == "platform" else (source.chat_id,)
    if source.chat_type == "thread":
        return (source.chat_id, source.thread_id, source.user_id if scope.thread == "user" else None)
    return (source.chat_id, source.user_id if scope.group == "user" else None)


def parse_key(text: str) -> PersonKey | ChatKey:
    """Take a printed key apart, for display, or raise ``InvalidValue``."""
    words = text.split(":")
    if len(words) < 4 or words[0] != "agent" or "" in words:
        raise InvalidValue(f"session key {text!r}: it has the form agent:<profile>:<platform>:<chat type>:…")
    profile = unescape_part(words[1])
    if words[2] == "person":
        if len(words) != 4 or not re.fullmatch(r"[1-9][0-9]*", words[3]):
            raise InvalidValue(
                f"session key {text!r}: a person's key has the form agent:<profile>:person:<number>"
            )
        return PersonKey(profile=profile, person_id=int(words[3]))
    platform, account = parse_surface(words[2])
    return ChatKey(
        profile=profile,
        platform=platform,
        account=account,
        chat_type=check_chat_type(words[3]),
        parts=tuple(unescape_part(word) for word in words[4:]),
    )


def escape_part(text: str) -> str:
    """Return ``text`` with ``:``, ``@`` and ``%`` percent-escaped."""
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], text)


def unescape_part(text: str) -> str:
    """Invert ``escape_part``; raise ``InvalidValue`` for what it never makes."""
    if _WRONG.search(text):
        raise InvalidValue(
            f"{text!r}: ':', '@' and '%' must be written as %3A, %40 and %25, and nothing else escaped"
        )
    return _ESCAPED.sub(lambda found: chr(int(found[0][1:], 16)), text)


def format_surface(platform: str, account: str | None) -> str:
    """Return ``<platform>[@<account>]``, escaped."""
    return escape_part(platform) if account is None else f"{escape_part(platform)}@{escape_part(account)}"


def parse_surface(text: str) -> tuple[str, str | None]:
    """Invert ``format_surface``: the platform and the account, or raise ``InvalidValue``."""
    platform, at, account = text.partition("@")
    if at and not account:
        raise InvalidValue(f"{text!r}: an account must follow the '@'")
    return check_platform(unescape_part(platform)), unescape_part(account) if at else None
