"""What the tools of MCP servers and whoever speaks the protocol know of each other, in our own words."""

from collections.abc import Mapping
from typing import Any

from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A tool as its server tells of it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    only_reads: bool = False


class Refused(Exception):
    """The server said no, in its own words."""


class Silent(Exception):
    """The server did not answer in so many seconds."""


class Gone(Exception):
    """The server ended during a call."""
