"""The settings of the application itself: the profile, its store and folders, and the log."""

import re
from typing import Any, Final, get_args

from keryx.config import LogFormat, LogLevel, LogSettings
from keryx.config.readers import Raw, one_of, optional, text, zone
from keryx.config.setting import Setting
from keryx.config_load.system_zone import NONE_FOUND
from keryx.errors import InvalidValue

_LOG: Final = LogSettings()
_STORE: Final = re.compile(r"(postgres|postgresql|sqlite)://")
_PASSWORD: Final = re.compile(r"(?<=://)([^:/?#@]*):.*(?=@)|(?<=password=)[^&]*")


def store_address(raw: Raw) -> str:
    """Return the path or address of a store."""
    given = text(raw)
    if "://" in given and not _STORE.match(given):
        raise InvalidValue("this is not a store; write a path, sqlite:///path or postgresql://host/name")
    return given


def without_password(address: str) -> str:
    """Return the address of a store with the password replaced by ``***``."""
    return _PASSWORD.sub(lambda match: "***" if match[1] is None else f"{match[1]}:***", address)


PROFILE = Setting(
    name="profile",
    read=text,
    default="main",
    place="environment",
    help="The profile: an isolated identity with its own configuration, secrets, data and output.",
)
DATABASE: Setting[str | None] = Setting(
    name="database",
    read=optional(store_address),
    default=None,
    place="own",
    is_path=True,
    redact=without_password,
    help="The store: a path, `sqlite:///path` or `postgresql://…`. Default: `keryx.db` in the data folder.",
)
TIMEZONE = Setting(
    name="timezone",
    read=zone,
    default=NONE_FOUND,
    help="The IANA time zone for hours and dates. Default: that of the machine, or `UTC` if it has none.",
)
WORKSPACE: Setting[str | None] = Setting(
    name="workspace",
    read=optional(text),
    default=None,
    is_path=True,
    help="The folder that tools use in a conversation without its own. Default: the folder in which Keryx started.",
)
LOG_LEVEL: Setting[LogLevel] = Setting(
    name="log.level",
    read=one_of(get_args(LogLevel)),
    default=_LOG.level,
    help="The lowest level that is logged: `debug`, `info`, `warning` or `error`.",
)
LOG_FORMAT: Setting[LogFormat] = Setting(
    name="log.format",
    read=one_of(get_args(LogFormat)),
    default=_LOG.format,
    help="`text` for people, or `json`, one object per line, for programs.",
)
ROWS: Final[tuple[Setting[Any], ...]] = (PROFILE, DATABASE, TIMEZONE, WORKSPACE, LOG_LEVEL, LOG_FORMAT)
