"""The terminal as a plug-in. The command line makes the adapter, one for each open terminal."""

from typing import Final

from keryx.platforms.plugin import PlatformPlugin

PLUGIN: Final = PlatformPlugin(make=lambda _: None)
