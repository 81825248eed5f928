"""Background processes as a session may see them: its own, and in private all of the person's."""

from typing import NamedTuple, TypeAlias

from keryx.clock import Micros
from keryx.core.conversations.tables import sessions
from keryx.core.processes import tables as processes
from keryx.core.processes.rules import ProcessState
from keryx.errors import NotFound
from keryx.store.database import ReadTx

__all__ = ["ListedProcess", "Process", "find_in_folder", "get_process", "list_of_session", "list_processes"]

Process: TypeAlias = processes.Process


class ListedProcess(NamedTuple):
    """A background process as a list shows it."""

    id: int
    state: ProcessState
    command: str
    exit_code: int | None
    started_at: Micros
    ended_at: Micros | None


def list_processes(tx: ReadTx, session_id: str, *, limit: int) -> list[ListedProcess]:
    """Return the background processes of a session, newest first."""
    return tx.all(ListedProcess, "process_list.list_of_session", session_id=session_id, limit=limit)


def list_of_session(tx: ReadTx, session_id: str, *, person_id: int, limit: int) -> list[ListedProcess]:
    """Return the processes of a session this person may see, newest first, those that ended included."""
    sessions.get_visible(tx, session_id, person_id=person_id)
    return list_processes(tx, session_id, limit=limit)


def find_in_folder(tx: ReadTx, folder: str) -> Process | None:
    """Return the process whose folder has this name, or None; for who looks after it, not for what a person sees."""
    return processes.find_in_folder(tx, folder)


def get_process(
    tx: ReadTx, process_id: int, *, session_id: str, person_id: int, audience_id: int | None
) -> Process:
    """Return a process of this session or, where nobody else reads along, of another one of this person's."""
    found = processes.get_process(tx, process_id)
    is_own = found.owner_id == person_id and (audience_id is None or found.session_id == session_id)
    if not is_own:
        raise NotFound(f"There is no process {process_id}.")
    sessions.get_visible(tx, found.session_id, person_id=person_id)
    return found
