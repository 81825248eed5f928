"""The leases that terminals hold: on the account of a chat, and on the turn of its session."""

from keryx.core.turns.tables import turns
from keryx.core.turns.views import terminal_rows
from keryx.core.turns.views.terminal_chat import LocalChat, find_session
from keryx.core.values.turn_states import TurnId
from keryx.store.database import ReadTx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLease:
    """A lease that a terminal holds: on a turn, or (where there is none) on the account of a chat."""

    holder: str
    epoch: int
    host: str
    pid: int
    turn_id: TurnId | None = None
    session_id: str | None = None


def list_leases(tx: ReadTx, chat: LocalChat) -> list[HeldLease]:
    """Return the leases of terminals on the account of a chat and on the running turn of its session."""
    held: list[HeldLease] = []
    address = chat.address
    sender = terminal_rows.find_sender(tx, platform=address.platform, account=address.account or "")
    process = None if sender is None else terminal_rows.find_process(tx, sender.holder)
    if sender is not None and process is not None:
        held.append(HeldLease(holder=sender.holder, epoch=sender.epoch, host=process.host, pid=process.pid))
    session_id = find_session(tx, chat)
    turn = None if session_id is None else turns.find_live_turn(tx, session_id)
    if turn is None or turn.state != "running" or turn.stop_requested_at is not None:
        return held  # `recover` stops a turn that a person asked to stop, and keeps its text
    process = terminal_rows.find_process(tx, turn.holder)
    if process is not None:
        held.append(
            HeldLease(
                holder=turn.holder,
                epoch=turn.epoch,
                host=process.host,
                pid=process.pid,
                turn_id=turn.id,
                session_id=turn.session_id,
            )
        )
    return held
