"""Record the start, the end and the notices of background processes.

A process ends once, and each notice becomes one inbox item of its session, however often a supervisor repeats it.
"""

import json
from typing import Literal

from keryx.clock import HOUR
from keryx.core.conversations.rules.part import TextPart
from keryx.core.conversations.tables import feed, sessions
from keryx.core.processes import tables as processes
from keryx.core.processes.rules import PIN_HOURS, NoticePolicy
from keryx.core.processes.tables import Process
from keryx.core.turns.tables import inbox
from keryx.core.turns.transactions.inbox_items import queue_item
from keryx.errors import InvalidValue
from keryx.store.database import Tx
from keryx.values import dataclass

QUOTED_CHARACTERS_MAX = 240
TAIL_CHARACTERS_MAX = 2_000

ON_EXIT = NoticePolicy()
"""The default: a notice when the process exits."""

End = Literal["exited", "killed", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProcess:
    """A process to start; it postpones its session's reset for up to ``pin_hours``."""

    command: str
    workspace: str | None
    backend: str = "local"
    has_pty: bool = False
    notice: NoticePolicy = ON_EXIT
    pin_hours: int = PIN_HOURS
    host: str | None = None
    """The machine that runs it."""
    folder: str | None = None
    """The name of its folder there; the gateway that finds the folder watches the process."""

    def __post_init__(self) -> None:
        if not self.command.strip():
            raise InvalidValue("a process without a command: give the command to run")
        if self.pin_hours < 0:
            raise InvalidValue(f"a process that pins its session for {self.pin_hours} hours: give 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Recorded; ``inbox_id`` is the session's notice, if it gets one."""

    inbox_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessAlreadyEnded:
    """The process had ended; nothing changed."""

    process: Process


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyReported:
    """The session has this notice; nothing changed."""

    inbox_id: int


def record_started(tx: Tx, new: NewProcess, *, session_id: str, person_id: int) -> int:
    """Record a process of a session that the person may see, and return its id. Start the process after the commit.

    A crash before the start leaves a row without a pid, which is recorded as lost. No process runs without a row.
    """
    sessions.get_visible(tx, session_id, person_id=person_id)
    sessions.lock_session(tx, session_id)
    process_id = processes.add_process(
        tx,
        session_id=session_id,
        owner_id=person_id,
        notice=new.notice,
        command=new.command,
        workspace=new.workspace,
        backend=new.backend,
        has_pty=int(new.has_pty),
        host=new.host,
        folder=new.folder,
        pins_until_at=tx.now + new.pin_hours * HOUR if new.pin_hours else None,
    )
    feed.add_event(tx, session_id, "process", process_id)
    return process_id


def record_spawned(
    tx: Tx, process_id: int, *, pid: int, pid_started_at: int, machine_boot_id: str
) -> Recorded | ProcessAlreadyEnded:
    """Record the pid, its start time and the machine's boot id: they identify the process after a restart."""
    process = _lock_process(tx, process_id)
    if not processes.set_pid(
        tx, process_id, pid=pid, pid_started_at=pid_started_at, machine_boot_id=machine_boot_id
    ):
        return ProcessAlreadyEnded(process=process)
    feed.add_event(tx, process.session_id, "process", process_id)
    return Recorded()


def record_end(
    tx: Tx, process_id: int, end: End, *, exit_code: int | None = None, output_bytes: int = 0, tail: str = ""
) -> Recorded | ProcessAlreadyEnded:
    """Record how a process ended. Its session gets a notice, unless the process was killed or its policy forbids it.

    Only ``exited`` has an ``exit_code``. ``tail`` is the end of the output, for the agent.
    """
    if (end == "exited") != (exit_code is not None):
        raise InvalidValue(f"process {process_id} is {end}: an exit code is given exactly when it exited")
    process = _lock_process(tx, process_id)
    if not processes.end_process(tx, process_id, state=end, exit_code=exit_code, output_bytes=output_bytes):
        return ProcessAlreadyEnded(process=process)
    feed.add_event(tx, process.session_id, "process", process_id)
    if end == "killed" or not process.notice.on_exit:
        return Recorded()
    how = (
        "was lost: it is unknown whether it still runs" if end == "lost" else f"exited with code {exit_code}"
    )
    return Recorded(inbox_id=_notify(tx, process, ref=f"process:{process_id}:exit", what=how, tail=tail))


def record_pattern(tx: Tx, process_id: int, *, pattern: str, line: str) -> Recorded | AlreadyReported:
    """Notify the session, once, that the output contains a watched pattern."""
    process = _lock_process(tx, process_id)
    what = f"wrote a line with {_quoted(pattern[:QUOTED_CHARACTERS_MAX])}"
    number = process.notice.patterns.index(pattern)
    return _notify_once(tx, process, ref=f"process:{process_id}:pattern:{number}", what=what, tail=line)


def record_progress(
    tx: Tx, process_id: int, *, number: int, tail: str
) -> Recorded | AlreadyReported | ProcessAlreadyEnded:
    """Notify the session, for the ``number``-th time, that a process still runs."""
    process = _lock_process(tx, process_id)
    if process.state != "running":
        return ProcessAlreadyEnded(process=process)
    return _notify_once(
        tx, process, ref=f"process:{process_id}:every:{number}", what="is still running", tail=tail
    )


def _lock_process(tx: Tx, process_id: int) -> Process:
    """Lock the process's session and return the process."""
    sessions.lock_session(tx, processes.get_process(tx, process_id).session_id)
    return processes.get_process(tx, process_id)


def _notify_once(tx: Tx, process: Process, *, ref: str, what: str, tail: str) -> Recorded | AlreadyReported:
    known = inbox.find_internal(tx, ref)
    if known is not None:
        return AlreadyReported(inbox_id=known.id)
    return Recorded(inbox_id=_notify(tx, process, ref=ref, what=what, tail=tail))


def _notify(tx: Tx, process: Process, *, ref: str, what: str, tail: str) -> int:
    text = f"Background process {process.id} ({_quoted(process.command[:QUOTED_CHARACTERS_MAX])}) {what}."
    if tail:
        text += f" The end of its output: {_quoted(tail[-TAIL_CHARACTERS_MAX:])}"
    return queue_item(
        tx,
        session_id=process.session_id,
        kind="process",
        # The agent's answer goes to the chat where the session was opened.
        source=sessions.get_session(tx, process.session_id).source,
        is_internal=True,
        ref=ref,
        parts=(TextPart(text=text),),
        person_id=process.owner_id,
    )


def _quoted(text: str) -> str:
    """Return text of unknown origin as a JSON string, so that it cannot look like Keryx's own text."""
    return json.dumps(text, ensure_ascii=False)
