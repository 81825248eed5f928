"""What is going on, on one screen: turns, the queue, questions, processes and the next schedules."""

from typing import Final

from keryx.store.database import ReadTx
from keryx.store.tables import board
from keryx.store.tables.board import LiveTurn, NextFire, OpenApproval, QueuedItem, RunningProcess
from keryx.values import dataclass

__all__ = ["Board", "LiveTurn", "NextFire", "OpenApproval", "QueuedItem", "RunningProcess", "show_board"]

ROWS_MAX: Final = 100
"""Of each kind: more than a screen shows, and a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Everything that runs or waits, as far as a person may see it."""

    turns: tuple[LiveTurn, ...]
    queue: tuple[QueuedItem, ...]
    approvals: tuple[OpenApproval, ...]
    processes: tuple[RunningProcess, ...]
    schedules: tuple[NextFire, ...]


def show_board(tx: ReadTx, *, person_id: int, limit: int = ROWS_MAX) -> Board:
    """Return what goes on now, at most ``limit`` of each kind."""
    return Board(
        turns=tuple(board.list_turns(tx, person_id, limit=limit)),
        queue=tuple(board.list_queue(tx, person_id, limit=limit)),
        approvals=tuple(board.list_approvals(tx, person_id, limit=limit)),
        processes=tuple(board.list_processes(tx, person_id, limit=limit)),
        schedules=tuple(board.list_schedules(tx, person_id, limit=limit)),
    )
