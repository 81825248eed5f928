"""The terminal as a plug-in: the command line makes its adapter, one for each terminal that somebody opens."""

from typing import Final

from keryx.platforms.plugin import PlatformPlugin

PLUGIN: Final = PlatformPlugin(make=lambda _: None)
