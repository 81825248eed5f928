"""Where output should go (a ``Route``), and the places it goes to (``Address``, ``LocalFile``).

A route is checked when it is written; resolving a route never fails. A target that has lost its address becomes a
file that names the target, so output is not lost and the loss of the address can be reported.
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Literal, Self, get_args

from keryx.core.conversations.rules.session_key import (
    escape_part,
    format_surface,
    parse_surface,
    unescape_part,
)
from keryx.core.conversations.rules.source import Source, check_platform
from keryx.errors import InvalidValue
from keryx.values import dataclass

SplitChat = Callable[[str], tuple[str, str | None]]
"""A platform's function that splits ``<chat>[:<thread>]``; joining with a colon must be the inverse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A complete place to send to."""

    platform: str
    account: str | None = None
    chat_id: str
    thread_id: str | None = None

    def __post_init__(self) -> None:
        check_platform(self.platform)
        if "" in (self.account, self.chat_id, self.thread_id):
            raise InvalidValue(
                f"address on {self.platform} with an empty part: give the id, or leave the part out"
            )

    def __str__(self) -> str:
        """Return ``<platform>[@<account>]:<chat>[:<thread>]``, escaped; equal texts are equal addresses."""
        parts = [self.chat_id] if self.thread_id is None else [self.chat_id, self.thread_id]
        return ":".join([format_surface(self.platform, self.account), *map(escape_part, parts)])

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the address that ``str`` wrote, or raise ``InvalidValue``."""
        surface, *parts = text.split(":")
        if not 1 <= len(parts) <= 2:
            raise InvalidValue(f"address {text!r}: it has the form <platform>[@<account>]:<chat>[:<thread>]")
        platform, account = parse_surface(surface)
        chat_id, *thread = map(unescape_part, parts)
        return cls(
            platform=platform, account=account, chat_id=chat_id, thread_id=thread[0] if thread else None
        )

    @classmethod
    def from_columns(cls, platform: str, account: str, chat_id: str, thread_id: str | None) -> Self:
        """Return the address in the columns of a row, in which an empty account means none."""
        return cls(platform=platform, account=account or None, chat_id=chat_id, thread_id=thread_id)

    def columns(self) -> dict[str, str | None]:
        """Return the columns that ``from_columns`` reads."""
        return {
            "platform": self.platform,
            "account": self.account or "",
            "chat_id": self.chat_id,
            "thread_id": self.thread_id,
        }

    @classmethod
    def of(cls, source: Source) -> Self:
        """Return the address of the chat that a message came from."""
        return cls(
            platform=source.platform,
            account=source.account,
            chat_id=source.chat_id,
            thread_id=source.thread_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """A file under the profile's ``output/``; ``instead_of`` names a target without an address."""

    instead_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToHome:
    """The home channel of a platform."""

    platform: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToChat:
    """One chat, or one thread in a chat."""

    platform: str
    chat_id: str
    thread_id: str | None = None


Word = Literal["origin", "local", "all"]
Target = Word | ToHome | ToChat

_WORDS: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One or several targets, in the written order."""

    targets: tuple[Target, ...]

    def __post_init__(self) -> None:
        if not self.targets:
            raise InvalidValue("a route needs a target: origin, local, all, a platform, or platform:chat")

    def __str__(self) -> str:
        """Return the text that ``parse_route`` reads as this route."""
        return ",".join(map(_target_text, self.targets))


ORIGIN = Route(targets=("origin",))
"""The chat that asked."""


def split_at_first_colon(text: str) -> tuple[str, str | None]:
    """Split ``<chat>[:<thread>]``, for platforms whose chat ids contain no colon."""
    chat_id, colon, thread_id = text.partition(":")
    return chat_id, thread_id if colon else None


def parse_route(
    text: str,
    *,
    splitters: Mapping[str, SplitChat],
    chats: Mapping[str, Mapping[str, str]] | None = None,
) -> Route:
    """Return the route that a person wrote, or raise ``InvalidValue`` with the nearest names.

    ``splitters`` contains every platform; ``chats`` contains the known chats (id to name) of the platforms that only
    reach known chats. On these, a chat may also be given by name. A comma inside an id is written ``%2C``.
    """
    targets: list[Target] = []
    for item in text.split(","):
        target = _parse_target(item.strip(), splitters=splitters, chats=chats or {})
        if target not in targets:
            targets.append(target)
    return Route(targets=tuple(targets))


def stored_route(text: str) -> Route:
    """Return the route that ``str`` wrote. The route was checked when written, so its platforms count as known."""
    platforms = {item.partition(":")[0] for item in text.split(",")}.difference(_WORDS)
    return parse_route(text, splitters=dict.fromkeys(platforms, split_at_first_colon))


def resolve_route(
    route: Route,
    *,
    origin: Source | None,
    homes: Mapping[str, Address],
    first_accounts: Mapping[str, str],
    scheduled: bool = False,
) -> list[Address | LocalFile]:
    """Return the places that the output goes to, each once, in the route's order.

    A chat is reached through the account of ``origin`` if ``origin`` is on the same platform, else through the
    platform's first account. ``scheduled`` output is also written to a file, whatever the route.
    """
    places: list[Address | LocalFile] = []
    for target in route.targets:
        places += _resolve_target(target, origin=origin, homes=homes, first_accounts=first_accounts)
    if scheduled and not any(isinstance(place, LocalFile) for place in places):
        places.append(LocalFile())
    return list(dict.fromkeys(places))


def _resolve_target(
    target: Target, *, origin: Source | None, homes: Mapping[str, Address], first_accounts: Mapping[str, str]
) -> list[Address | LocalFile]:
    missing = LocalFile(instead_of=_target_text(target))
    if isinstance(target, ToChat):
        if origin is not None and origin.platform == target.platform:
            account = origin.durable.account
        else:
            account = first_accounts.get(target.platform)
        return [
            Address(
                platform=target.platform, account=account, chat_id=target.chat_id, thread_id=target.thread_id
            )
        ]
    if isinstance(target, ToHome):
        return [homes.get(target.platform, missing)]
    if target == "origin":
        return [missing if origin is None else Address.of(origin)]
    if target == "local":
        return [LocalFile()]
    return [homes[platform] for platform in sorted(homes)] or [missing]


def _parse_target(
    item: str, *, splitters: Mapping[str, SplitChat], chats: Mapping[str, Mapping[str, str]]
) -> Target:
    head, colon, rest = item.partition(":")
    platform = head.strip().lower()
    if not colon and platform in _WORDS:
        return platform
    if platform not in splitters:
        known = [*_WORDS, *splitters]
        raise InvalidValue(f"route {item!r}: there is no platform {platform!r}; {_nearest(platform, known)}")
    if not colon:
        return ToHome(platform=platform)
    rest = rest.strip().replace("%2C", ",").replace("%25", "%")
    chat_id, thread_id = splitters[platform](rest)
    if not chat_id or thread_id == "":
        raise InvalidValue(
            f"route {item!r}: give a chat after the colon, like {platform}:<chat> or <chat>:<thread>"
        )
    if platform in chats:
        chat_id = _known_chat(item, chat_id, chats[platform])
    return ToChat(platform=platform, chat_id=chat_id, thread_id=thread_id)


def _known_chat(item: str, given: str, known: Mapping[str, str]) -> str:
    if given in known:
        return given
    named = [chat_id for chat_id, name in known.items() if name.casefold() == given.casefold()]
    if len(named) == 1:
        return named[0]
    if named:
        raise InvalidValue(
            f"route {item!r}: {len(named)} chats have this name; use the id: {', '.join(sorted(named))}"
        )
    raise InvalidValue(f"route {item!r}: no such chat; {_nearest(given, [*known.values(), *known])}")


def _target_text(target: Target) -> str:
    if isinstance(target, ToHome):
        return target.platform
    if isinstance(target, ToChat):
        chat = target.chat_id if target.thread_id is None else f"{target.chat_id}:{target.thread_id}"
        return f"{target.platform}:{chat.replace('%', '%25').replace(',', '%2C')}"
    return target


def _nearest(given: str, names: Iterable[str]) -> str:
    known = list(dict.fromkeys(names))
    near = get_close_matches(given, known, n=3)
    if near:
        return f"did you mean {', '.join(near)}?"
    return f"known: {', '.join(known[:10])}" if known else "none is known yet"
