"""The heartbeat of a process that works on the store."""

import os
import socket
from typing import Literal

from keryx import __version__
from keryx.core.upkeep.transactions.record_heartbeat import enter_node
from keryx.gateway.runtime.runtime import Runtime


async def send_heartbeat(runtime: Runtime, kind: Literal["gateway", "chat"]) -> None:
    """Record that this process works on the store. Due as often as leases are renewed."""
    host, pid = socket.gethostname(), os.getpid()
    await runtime.write(
        lambda tx: enter_node(tx, holder=runtime.holder, kind=kind, host=host, pid=pid, version=__version__)
    )
