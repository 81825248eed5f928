"""Release the leases of terminals of this machine that were killed, so that nobody waits for the leases to run out."""

import os
import socket
from typing import Final

from keryx.core.accounts.transactions import Connector, release_connector
from keryx.core.conversations.rules.session import SessionId
from keryx.core.turns.rules.lease import Lease, TurnLease
from keryx.core.turns.transactions.fail_turn import Failure, fail_turn
from keryx.core.turns.views.terminal_chat import LocalChat
from keryx.core.turns.views.terminal_leases import HeldLease, list_leases
from keryx.errors import LeaseLost
from keryx.gateway.runtime.runtime import Runtime
from keryx.ids import Ids
from keryx.store.database import Tx

KILLED: Final = "the terminal that ran the turn was killed"


async def release_dead(runtime: Runtime, chat: LocalChat) -> None:
    """Release the leases on a chat's account and turn whose process no longer runs."""
    for held in await runtime.database.read(lambda tx: list_leases(tx, chat)):
        if held.host == socket.gethostname() and not is_alive(held.pid):
            try:
                await runtime.write(lambda tx, held=held: _release(tx, held, chat=chat, ids=runtime.ids))  # type: ignore[misc]
            except LeaseLost:
                continue  # the lease ran out, or another terminal was faster


def is_alive(pid: int) -> bool:
    """Return whether a process of this machine runs; a process that we may not signal does."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _release(tx: Tx, held: HeldLease, *, chat: LocalChat, ids: Ids) -> None:
    if held.turn_id is None or held.session_id is None:
        address = chat.address
        connector = Connector(
            platform=address.platform, account=address.account or "", holder=held.holder, epoch=held.epoch
        )
        release_connector(tx, connector)
        return
    lease = Lease(
        session_id=SessionId(held.session_id),
        holder=held.holder,
        epoch=held.epoch,
        expires_at=tx.lease_now,
    )
    failure = Failure(reason=KILLED, retry_at=tx.now)
    fail_turn(tx, TurnLease(lease=lease, turn_id=held.turn_id), failure=failure, ids=ids)
