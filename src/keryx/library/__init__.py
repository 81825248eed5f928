"""Keryx for programs: the calls behind ``keryx.open`` and ``keryx.open_sync``."""

from keryx.library.client import Keryx, open  # noqa: A004 - said as `keryx.open`
from keryx.library.sync import KeryxSync, open_sync

__all__ = ["Keryx", "KeryxSync", "open", "open_sync"]
