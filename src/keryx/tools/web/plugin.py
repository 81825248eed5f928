"""The tools for the web as a plug-in, with the settings of the hosts that they may reach."""

import re
from typing import Final

from keryx.config.readers import flag, list_of
from keryx.config.setting import Setting
from keryx.errors import InvalidValue
from keryx.tools.plugin import MadeTools, ToolContext, ToolPlugin

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
    help="The hosts that `fetch_url` may reach although their addresses are private; a list.",
)


def _make(context: ToolContext) -> MadeTools:
    from keryx.tools.web.addresses import FetchPolicy
    from keryx.tools.web.fetch_url import FetchUrl

    values = context.configuration.values
    policy = FetchPolicy(private=values.of(FETCH_PRIVATE), allowed=frozenset(values.of(FETCH_ALLOW)))
    return MadeTools(tools=[FetchUrl(policy)])


PLUGIN: Final = ToolPlugin(settings=(FETCH_PRIVATE, FETCH_ALLOW), make=_make)
