"""What a plug-in of a platform brings: its settings, and how the adapter is made.

*Provisional*: a later issue widens this contract by capabilities, set-up steps and checks of a working set-up.
"""

from collections.abc import Callable

from keryx.config import Configuration, Plugin
from keryx.platforms.adapter import Adapter
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformPlugin(Plugin):
    """One platform. *Provisional.*

    The name of its entry point is the name of the platform. Its settings are called ``platforms.<name>.…``.
    """

    make: Callable[[Configuration], Adapter | None]
    """Returns None where the platform is switched off; raises ``InvalidValue`` where it cannot be started so."""
