"""The sign of life of a process that works on the store."""

import os
import socket
from typing import Literal

from keryx import __version__
from keryx.gateway.desk import Desk
from keryx.transactions.work_as_node import enter_node


async def give_sign(desk: Desk, kind: Literal["gateway", "chat"]) -> None:
    """Tell the store that this process works on it; due as often as leases are renewed."""
    host, pid = socket.gethostname(), os.getpid()
    await desk.write(
        lambda tx: enter_node(tx, holder=desk.holder, kind=kind, host=host, pid=pid, version=__version__)
    )
