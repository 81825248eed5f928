"""What is going on, on one screen: turns, the queue, questions, processes and the next schedules."""

from typing import Final, NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.message import decode_parts, preview_of
from keryx.core.turns.rules.inbox import InboxKind
from keryx.core.values.turn_states import TurnId, TurnPurpose, TurnState
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = [
    "LiveTurn",
    "NextFire",
    "OpenApproval",
    "Overview",
    "QueuedItem",
    "RunningProcess",
    "show_overview",
]

ROWS_MAX: Final = 100
"""Of each kind: more than a screen shows, and a bound."""


class LiveTurn(NamedTuple):
    """A turn that runs, or waits for somebody."""

    id: TurnId
    session_id: str
    title: str | None
    state: TurnState
    purpose: TurnPurpose
    model: str | None
    begun_at: Micros


class QueuedItem(NamedTuple):
    """Something that waits for its turn."""

    id: int
    session_id: str
    title: str | None
    kind: InboxKind
    body: str
    received_at: Micros
    ready_at: Micros

    @property
    def preview(self) -> str:
        """What it says, on one line."""
        return preview_of(decode_parts(self.body))


class OpenApproval(NamedTuple):
    """A question that waits for an answer."""

    id: int
    session_id: str
    title: str | None
    person_id: int
    question: str
    asked_at: Micros
    expires_at: Micros


class RunningProcess(NamedTuple):
    """A background process that runs."""

    id: int
    session_id: str
    title: str | None
    command: str
    backend: str
    output_bytes: int
    started_at: Micros


class NextFire(NamedTuple):
    """What a schedule will do next."""

    schedule_id: int
    name: str
    rule: str
    zone: str
    route: str
    due_at: Micros
    last_due_at: Micros | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything that runs or waits, as far as a person may see it."""

    turns: tuple[LiveTurn, ...]
    queue: tuple[QueuedItem, ...]
    approvals: tuple[OpenApproval, ...]
    processes: tuple[RunningProcess, ...]
    schedules: tuple[NextFire, ...]


def show_overview(tx: ReadTx, *, person_id: int, limit: int = ROWS_MAX) -> Overview:
    """Return what goes on now, at most ``limit`` of each kind."""
    return Overview(
        turns=tuple(_list_turns(tx, person_id, limit=limit)),
        queue=tuple(_list_queue(tx, person_id, limit=limit)),
        approvals=tuple(_list_approvals(tx, person_id, limit=limit)),
        processes=tuple(_list_processes(tx, person_id, limit=limit)),
        schedules=tuple(_list_schedules(tx, person_id, limit=limit)),
    )


def _list_turns(tx: ReadTx, person_id: int, *, limit: int) -> list[LiveTurn]:
    """Return the live turns a person may see, oldest first."""
    return tx.all(LiveTurn, "overview.list_turns", person_id=person_id, limit=limit)


def _list_queue(tx: ReadTx, person_id: int, *, limit: int) -> list[QueuedItem]:
    """Return what waits for its turn and a person may see, longest waiting first."""
    return tx.all(QueuedItem, "overview.list_queue", person_id=person_id, limit=limit)


def _list_approvals(tx: ReadTx, person_id: int, *, limit: int) -> list[OpenApproval]:
    """Return the open questions a person may see, the one that expires first first."""
    return tx.all(OpenApproval, "overview.list_approvals", person_id=person_id, limit=limit)


def _list_processes(tx: ReadTx, person_id: int, *, limit: int) -> list[RunningProcess]:
    """Return the running processes a person may see, oldest first."""
    return tx.all(RunningProcess, "overview.list_processes", person_id=person_id, limit=limit)


def _list_schedules(tx: ReadTx, person_id: int, *, limit: int) -> list[NextFire]:
    """Return what a person's schedules do next, soonest first."""
    return tx.all(NextFire, "overview.list_schedules", person_id=person_id, limit=limit)
