"""What goes on right now, a row for each thing."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.domain.inbox import InboxKind
from keryx.domain.message import decode_parts, preview_of
from keryx.domain.turn import TurnId, TurnPurpose, TurnState
from keryx.store.database import ReadTx


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


def list_turns(tx: ReadTx, person_id: int, *, limit: int) -> list[LiveTurn]:
    """Return the live turns a person may see, oldest first."""
    return [LiveTurn._make(row) for row in tx.rows("board.list_turns", person_id=person_id, limit=limit)]


def list_queue(tx: ReadTx, person_id: int, *, limit: int) -> list[QueuedItem]:
    """Return what waits for its turn and a person may see, longest waiting first."""
    return [QueuedItem._make(row) for row in tx.rows("board.list_queue", person_id=person_id, limit=limit)]


def list_approvals(tx: ReadTx, person_id: int, *, limit: int) -> list[OpenApproval]:
    """Return the open questions a person may see, the one that expires first first."""
    return [
        OpenApproval._make(row) for row in tx.rows("board.list_approvals", person_id=person_id, limit=limit)
    ]


def list_processes(tx: ReadTx, person_id: int, *, limit: int) -> list[RunningProcess]:
    """Return the running processes a person may see, oldest first."""
    return [
        RunningProcess._make(row) for row in tx.rows("board.list_processes", person_id=person_id, limit=limit)
    ]


def list_schedules(tx: ReadTx, person_id: int, *, limit: int) -> list[NextFire]:
    """Return what a person's schedules do next, soonest first."""
    return [NextFire._make(row) for row in tx.rows("board.list_schedules", person_id=person_id, limit=limit)]
