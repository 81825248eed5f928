"""The background processes that a session may see: its own, and in a private chat all of the person's."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.tables import sessions
from keryx.core.processes import tables as processes
from keryx.core.processes.rules import ProcessState
from keryx.core.processes.tables import Process, find_in_folder
from keryx.errors import NotFound
from keryx.store.database import ReadTx

__all__ = ["ListedProcess", "Process", "find_in_folder", "get_process", "list_of_session", "list_processes"]


class ListedProcess(NamedTuple):
    """A background process in a list."""

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
    """Return the processes of a session that this person may see, newest first."""
    sessions.get_visible(tx, session_id, person_id=person_id)
    return list_processes(tx, session_id, limit=limit)


def get_process(
    tx: ReadTx, process_id: int, *, session_id: str, person_id: int, audience_id: int | None
) -> Process:
    """Return a process of this session or, in a private chat, of any session of this person."""
    found = processes.get_process(tx, process_id)
    is_own = found.owner_id == person_id and (audience_id is None or found.session_id == session_id)
    if not is_own:
        raise NotFound(f"There is no process {process_id}.")
    sessions.get_visible(tx, found.session_id, person_id=person_id)
    return found
