"""The settings of turns: when a conversation is reset, and what a message does while a turn runs."""

from collections.abc import Collection
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_args

from keryx.config import TURNS_MAX, BusySettings
from keryx.config.readers import Reader, one_of, whole
from keryx.config.setting import Setting, Values
from keryx.core.conversations.rules.source import (
    CHAT_TYPES,
    check_chat_type,
    check_id,
    check_known_platform,
    check_platform,
)
from keryx.core.turns.rules.busy import BUSY_MODES, BusyMode
from keryx.core.turns.rules.reset import IDLE_MINUTES_MAX, Place, ResetMode, ResetPolicies, ResetPolicy
from keryx.errors import InvalidValue

T = TypeVar("T")
_RESET: Final = ResetPolicy()
_HOUR: Final = whole(0, 23)
_IDLE: Final = whole(1, IDLE_MINUTES_MAX)
_MODE: Final[Reader[ResetMode]] = one_of(get_args(ResetMode))


def reset_place(chosen: str) -> Place:
    """Split a key of ``reset.on`` into platform and chat type, or raise ``InvalidValue``."""
    platform, colon, chat_type = chosen.partition(":")
    if not colon and chosen in CHAT_TYPES:
        return None, check_chat_type(chosen)
    return check_platform(platform), check_chat_type(chat_type) if colon else None


def _check_reset_platform(chosen: str, known: Collection[str]) -> None:
    platform, chat_type = reset_place(chosen)
    if platform is not None:
        check_known_platform(platform, known, *(CHAT_TYPES if chat_type is None else ()))


def busy_place(chosen: str) -> tuple[str, str | None]:
    """Split a key of ``busy.on`` into platform and chat, or raise ``InvalidValue``."""
    platform, colon, chat = chosen.partition(":")
    check_platform(platform)
    if colon and not chat:
        raise InvalidValue(f"{chosen!r} names no chat; write the platform's id of the chat behind the colon")
    check_id("chat", chat)
    return platform, chat if colon else None


RESET_MODE = Setting(
    name="reset.mode",
    read=_MODE,
    default=_RESET.mode,
    help="When a conversation is reset (starts over): `none`, `idle`, `daily` or `both`.",
)
RESET_IDLE = Setting(
    name="reset.idle_minutes",
    read=_IDLE,
    default=_RESET.idle_minutes,
    help="The minutes without activity after which it is reset, for `idle` and `both`.",
)
RESET_HOUR = Setting(
    name="reset.at_hour",
    read=_HOUR,
    default=_RESET.at_hour,
    help="The hour of the reset, 0 to 23, in `timezone`, for `daily` and `both`.",
)


def _on_place(name: str, read: Reader[T], *, help: str) -> Setting[T | None]:  # noqa: A002 - as in Setting
    return Setting(
        name=f"reset.on.<where>.{name}",
        read=read,
        default=None,
        check_choice=reset_place,
        check_platforms=_check_reset_platform,
        help=help,
    )


RESET_ON_MODE = _on_place(
    "mode", _MODE, help="The mode on a platform, in a chat type, or in `platform:chat type`, which wins."
)
RESET_ON_IDLE = _on_place("idle_minutes", _IDLE, help="The idle minutes there; otherwise those of `reset`.")
RESET_ON_HOUR = _on_place("at_hour", _HOUR, help="The hour there; otherwise that of `reset`.")
BUSY_MODE: Setting[BusyMode] = Setting(
    name="busy.mode",
    read=one_of(BUSY_MODES),
    default="queue",
    help=(
        "What a message does while a turn runs: `queue`, `steer`, `interrupt`, `collect` or `rollback`. "
        "In a group, a turn answers one person; other people's messages wait for their own turns."
    ),
)
BUSY_ON: Setting[BusyMode | None] = Setting(
    name="busy.on.<where>",
    read=one_of(BUSY_MODES),
    default=None,
    check_choice=busy_place,
    check_platforms=lambda chosen, known: check_known_platform(busy_place(chosen)[0], known),
    help="The busy mode on a platform, or in one chat, written `platform:chat id`.",
)
TURNS = Setting(
    name="turns_max",
    read=whole(1, 10_000),
    default=TURNS_MAX,
    help="How many turns one gateway runs at the same time.",
)
_ON_PLACES: Final = (RESET_ON_MODE, RESET_ON_IDLE, RESET_ON_HOUR)
ROWS: Final[tuple[Setting[Any], ...]] = (
    *(RESET_MODE, RESET_IDLE, RESET_HOUR, *_ON_PLACES),
    *(BUSY_MODE, BUSY_ON, TURNS),
)


def reset_policies(values: Values, *, zone: str) -> ResetPolicies:
    """Return when conversations are reset; hours are in ``zone``."""
    places = {place for setting in _ON_PLACES for place in values.by_choice(setting)}
    return ResetPolicies(
        default=_policy(values, None, zone=zone),
        by_place={reset_place(place): _policy(values, place, zone=zone) for place in sorted(places)},
    )


def _policy(values: Values, place: str | None, *, zone: str) -> ResetPolicy:
    """Return the policy of a place; fields that it does not set come from the default policy."""
    mode = values.of(RESET_ON_MODE, place)
    idle = values.of(RESET_ON_IDLE, place)
    hour = values.of(RESET_ON_HOUR, place)
    return ResetPolicy(
        mode=values.of(RESET_MODE) if mode is None else mode,
        idle_minutes=values.of(RESET_IDLE) if idle is None else idle,
        at_hour=values.of(RESET_HOUR) if hour is None else hour,
        zone=zone,
    )


def busy_settings(values: Values) -> BusySettings:
    """Return what a message does while a turn runs."""
    default = values.of(BUSY_MODE)
    modes = {busy_place(place): mode or default for place, mode in values.by_choice(BUSY_ON).items()}
    return BusySettings(default=default, by_place=MappingProxyType(modes))
