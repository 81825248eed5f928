"""The plug-in of a platform: its settings, and a function that makes the adapter.

*Provisional*: a later version adds capabilities, set-up steps and checks of the set-up.
"""

from collections.abc import Callable

from keryx.config import Configuration, Plugin
from keryx.platforms.adapter import Adapter
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformPlugin(Plugin):
    """One platform. *Provisional.*

    The name of the entry point is the name of the platform. Its settings are named ``platforms.<name>.…``.
    """

    make: Callable[[Configuration], Adapter | None]
    """Returns None if the platform is switched off; raises ``InvalidValue`` if its settings are not sufficient."""
