"""Background processes, running and ended."""

from dataclasses import asdict
from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.people.rules.person import PersonId
from keryx.core.processes.rules import NoticePolicy, ProcessState
from keryx.errors import NotFound
from keryx.store.codec import clean_columns, clean_text, from_json, to_json
from keryx.store.database import ReadTx, Tx


class Process(NamedTuple):
    """A background process."""

    id: int
    session_id: str
    owner_id: PersonId
    state: ProcessState
    command: str
    workspace: str | None
    backend: str
    has_pty: int
    pid: int | None
    pid_started_at: Micros | None
    boot_id: str | None
    exit_code: int | None
    notice_json: str
    output_bytes: int
    pins_until_at: Micros | None
    started_at: Micros
    ended_at: Micros | None
    host: str | None
    folder: str | None

    @property
    def notice(self) -> NoticePolicy:
        """When the process creates an inbox item."""
        columns = from_json(self.notice_json)
        return NoticePolicy(**(columns | {"patterns": tuple(columns["patterns"])}))


def add_process(
    tx: Tx, *, session_id: str, owner_id: int, notice: NoticePolicy, **columns: str | int | None
) -> int:
    """Add a running process and return its id; ``columns`` are its other columns."""
    columns = clean_columns(columns) | {"notice": to_json(asdict(notice))}
    return int(tx.value("processes.add", session_id=session_id, owner_id=owner_id, **columns))


def get_process(tx: ReadTx, process_id: int) -> Process:
    """Return a process without a check of permissions; for a person use the view."""
    row = tx.one(Process, "processes.find", process_id=process_id)
    if row is None:
        raise NotFound(f"There is no process {process_id}.")
    return row


def find_in_folder(tx: ReadTx, folder: str) -> Process | None:
    """Return the process whose folder has this name, or None, without a check of permissions."""
    return tx.one(Process, "processes.find_in_folder", folder=folder)


def set_pid(tx: Tx, process_id: int, *, pid: int, pid_started_at: Micros, machine_boot_id: str) -> bool:
    """Set the pid of a running process; return False if it has ended."""
    return (
        tx.run(
            "processes.set_pid",
            process_id=process_id,
            pid=pid,
            pid_started_at=pid_started_at,
            machine_boot_id=clean_text(machine_boot_id),
        )
        == 1
    )


def end_process(
    tx: Tx, process_id: int, *, state: ProcessState, exit_code: int | None, output_bytes: int
) -> bool:
    """End a running process; return False if it had ended."""
    end = {"state": state, "exit_code": exit_code, "output_bytes": output_bytes}
    return tx.run("processes.end", process_id=process_id, **end) == 1


def session_pinned(tx: ReadTx, session_id: str) -> bool:
    """Return whether a running process postpones the session's reset."""
    return tx.exists("processes.find_pin", session_id=session_id)


def has_running(tx: ReadTx, session_id: str) -> bool:
    """Return whether a process of the session runs."""
    return tx.exists("processes.has_running", session_id=session_id)


def drop_of_session(tx: Tx, session_id: str) -> None:
    """Delete the session's processes; all must have ended."""
    tx.run("processes.drop_of_session", session_id=session_id)
