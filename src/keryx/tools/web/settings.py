"""The settings of the tools for the web: what they may reach."""

import re
from typing import Any, Final

from keryx.config.readers import flag, list_of
from keryx.config.setting import Setting
from keryx.errors import InvalidValue

_HOST: Final = re.compile(r"[\w.:-]+")


def host(name: str) -> str:
    """Return a host in small letters, or raise ``InvalidValue``."""
    if not _HOST.fullmatch(name):
        raise InvalidValue(f"{name!r} is no host; write its name or address alone, such as nas.local")
    return name.lower()


FETCH_PRIVATE = Setting(
    name="tools.fetch.private",
    read=flag,
    default=False,
    place="own",
    help="Whether `fetch_url` may reach addresses of private networks and of this machine.",
)
FETCH_ALLOW: Setting[tuple[str, ...]] = Setting(
    name="tools.fetch.allow",
    read=list_of(host),
    default=(),
    place="own",
    help="The hosts that `fetch_url` may reach though their addresses are private; a list.",
)
ROWS: Final[tuple[Setting[Any], ...]] = (FETCH_PRIVATE, FETCH_ALLOW)
