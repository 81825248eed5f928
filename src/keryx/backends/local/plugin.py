"""Background processes on this machine as a plug-in."""

from typing import Final

from keryx.backends.plugin import BackendContext, BackendPlugin
from keryx.core.processes.backend import ProcessBackend


def _make(context: BackendContext) -> ProcessBackend:
    from keryx.backends.local.registry import Registry

    return Registry(context.database, context.folder, clock=context.clock, ids=context.ids)


PLUGIN: Final = BackendPlugin(make=_make)
