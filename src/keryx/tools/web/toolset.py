"""The list of the tools that read the web. A new tool is a module of this folder and a line here."""

from collections.abc import Sequence

from keryx.tools.tool import Tool
from keryx.tools.web.addresses import FetchPolicy
from keryx.tools.web.fetch_url import FetchUrl


def web_tools(policy: FetchPolicy) -> Sequence[Tool]:
    """Return the tools that read pages from the hosts that ``policy`` allows."""
    return [FetchUrl(policy)]
