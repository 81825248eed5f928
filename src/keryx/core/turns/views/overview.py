"""The overview: live turns, the queue, open approvals, running processes and the next schedules."""

from typing import Final, NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.message import decode_parts, preview_of
from keryx.core.turns.rules.inbox import InboxKind
from keryx.core.values.turn_states import TurnId, TurnPurpose, TurnState
from keryx.store.database import ReadTx
from keryx.values import dataclass

ROWS_MAX: Final = 100
"""The bound for each kind; more than fits on a screen."""


class LiveTurn(NamedTuple):
    """A turn that runs, or waits for a person."""

    id: TurnId
    session_id: str
    title: str | None
    state: TurnState
    purpose: TurnPurpose
    model: str | None
    begun_at: Micros


class QueuedItem(NamedTuple):
    """An inbox item that waits for its turn."""

    id: int
    session_id: str
    title: str | None
    kind: InboxKind
    body: str
    received_at: Micros
    ready_at: Micros

    @property
    def preview(self) -> str:
        """The content on one line."""
        return preview_of(decode_parts(self.body))


class OpenApproval(NamedTuple):
    """An approval that waits for an answer."""

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
    """The next fire of a schedule."""

    schedule_id: int
    name: str
    rule: str
    zone: str
    route: str
    due_at: Micros
    last_due_at: Micros | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything that runs or waits and a person may see."""

    turns: tuple[LiveTurn, ...]
    queue: tuple[QueuedItem, ...]
    approvals: tuple[OpenApproval, ...]
    processes: tuple[RunningProcess, ...]
    schedules: tuple[NextFire, ...]


def show_overview(tx: ReadTx, *, person_id: int, limit: int = ROWS_MAX) -> Overview:
    """Return what runs or waits now, at most ``limit`` of each kind."""
    for_person = {"person_id": person_id, "limit": limit}
    return Overview(
        turns=tuple(tx.all(LiveTurn, "overview.list_turns", **for_person)),
        queue=tuple(tx.all(QueuedItem, "overview.list_queue", **for_person)),
        approvals=tuple(tx.all(OpenApproval, "overview.list_approvals", **for_person)),
        processes=tuple(tx.all(RunningProcess, "overview.list_processes", **for_person)),
        schedules=tuple(tx.all(NextFire, "overview.list_schedules", **for_person)),
    )
