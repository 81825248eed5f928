"""Record what background processes do: that they started, how they ended, what they call attention to.

A process leaves ``running`` once, and each thing it tells becomes one inbox item of its session, however often it is
reported: a supervisor that is not sure whether it was heard tells again.
"""

import json
from typing import Literal

from keryx.clock import HOUR
from keryx.core.conversations.rules.part import TextPart
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import feed, sessions
from keryx.core.processes import tables as processes
from keryx.core.processes.rules import PIN_HOURS, NoticePolicy
from keryx.core.processes.tables import Process
from keryx.core.turns.tables import inbox
from keryx.errors import InvalidValue
from keryx.store.codec import clean_text
from keryx.store.database import Tx
from keryx.values import dataclass

QUOTED_CHARACTERS_MAX = 240
TAIL_CHARACTERS_MAX = 2_000

ON_EXIT = NoticePolicy()
"""What is told when nothing else is wished."""

End = Literal["exited", "killed", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProcess:
    """What is about to run; ``pin_hours`` is how long it keeps its session from being reset, 0 for not at all."""

    command: str
    workspace: str | None
    backend: str = "local"
    has_pty: bool = False
    notice: NoticePolicy = ON_EXIT
    pin_hours: int = PIN_HOURS
    host: str | None = None
    """The machine that runs it."""
    folder: str | None = None
    """The name of its folder there, by which whoever has it knows that the process is theirs to look after."""

    def __post_init__(self) -> None:
        if not self.command.strip():
            raise InvalidValue("a process without a command: say what is to run")
        if self.pin_hours < 0:
            raise InvalidValue(f"a process that pins its session for {self.pin_hours} hours: give 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """It is stored; ``inbox_id`` is the item that tells the session, where it is told."""

    inbox_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessAlreadyEnded:
    """The process had ended before; nothing changed."""

    process: Process


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyReported:
    """The session was told this before; nothing changed."""

    inbox_id: int


def record_started(tx: Tx, new: NewProcess, *, session_id: str, person_id: int) -> int:
    """Record a process of a session the person may see, before it runs, and return its id.

    So a crash in between leaves a row without a pid, which is lost, and never a process nobody knows of.
    """
    sessions.get_visible(tx, session_id, person_id=person_id)
    sessions.lock_session(tx, session_id)
    process_id = processes.add_process(
        tx,
        session_id=session_id,
        owner_id=person_id,
        notice=new.notice,
        command=clean_text(new.command),
        workspace=clean_text(new.workspace),
        backend=new.backend,
        has_pty=int(new.has_pty),
        host=None if new.host is None else clean_text(new.host),
        folder=new.folder,
        pins_until_at=tx.now + new.pin_hours * HOUR if new.pin_hours else None,
    )
    feed.add_event(tx, session_id, "process", process_id)
    return process_id


def record_spawned(
    tx: Tx, process_id: int, *, pid: int, pid_started_at: int, machine_boot_id: str
) -> Recorded | ProcessAlreadyEnded:
    """Record by what the process is found again after a restart: pid, its start time, and the machine's boot id."""
    process = _locked(tx, process_id)
    if not processes.set_pid(
        tx, process_id, pid=pid, pid_started_at=pid_started_at, machine_boot_id=machine_boot_id
    ):
        return ProcessAlreadyEnded(process=process)
    feed.add_event(tx, process.session_id, "process", process_id)
    return Recorded()


def record_end(
    tx: Tx, process_id: int, end: End, *, exit_code: int | None = None, output_bytes: int = 0, tail: str = ""
) -> Recorded | ProcessAlreadyEnded:
    """Record how a process ended; its session is told unless somebody killed it or no notice was wanted.

    ``exit_code`` belongs to ``exited`` alone; ``tail`` is the end of the output, for the agent to see.
    """
    if (end == "exited") != (exit_code is not None):
        raise InvalidValue(f"process {process_id} is {end}: an exit code is given exactly when it exited")
    process = _locked(tx, process_id)
    if not processes.end_process(tx, process_id, state=end, exit_code=exit_code, output_bytes=output_bytes):
        return ProcessAlreadyEnded(process=process)
    feed.add_event(tx, process.session_id, "process", process_id)
    if end == "killed" or not process.notice.on_exit:
        return Recorded()
    how = "was lost: nobody knows whether it still runs" if end == "lost" else f"exited with code {exit_code}"
    return Recorded(inbox_id=_tell(tx, process, ref=f"process:{process_id}:exit", what=how, tail=tail))


def record_pattern(tx: Tx, process_id: int, *, pattern: str, line: str) -> Recorded | AlreadyReported:
    """Tell the session that a text it watches for was found in the output, once, however often it is there."""
    process = _locked(tx, process_id)
    what = f"wrote a line with {_quoted(pattern[:QUOTED_CHARACTERS_MAX])}"
    number = process.notice.patterns.index(pattern)
    return _tell_once(tx, process, ref=f"process:{process_id}:pattern:{number}", what=what, tail=line)


def record_progress(
    tx: Tx, process_id: int, *, number: int, tail: str
) -> Recorded | AlreadyReported | ProcessAlreadyEnded:
    """Tell the session, for the ``number``-th time, that a process still runs."""
    process = _locked(tx, process_id)
    if process.state != "running":
        return ProcessAlreadyEnded(process=process)
    return _tell_once(
        tx, process, ref=f"process:{process_id}:every:{number}", what="is still running", tail=tail
    )


def _locked(tx: Tx, process_id: int) -> Process:
    """Return the process as it is once nobody else can change it or its session."""
    sessions.lock_session(tx, processes.get_process(tx, process_id).session_id)
    return processes.get_process(tx, process_id)


def _tell_once(tx: Tx, process: Process, *, ref: str, what: str, tail: str) -> Recorded | AlreadyReported:
    known = inbox.find_unsent(tx, ref)
    if known is not None:
        return AlreadyReported(inbox_id=known.id)
    return Recorded(inbox_id=_tell(tx, process, ref=ref, what=what, tail=tail))


def _tell(tx: Tx, process: Process, *, ref: str, what: str, tail: str) -> int:
    text = f"Background process {process.id} ({_quoted(process.command[:QUOTED_CHARACTERS_MAX])}) {what}."
    if tail:
        text += f" The end of its output: {_quoted(tail[-TAIL_CHARACTERS_MAX:])}"
    inbox_id = inbox.add_item(
        tx,
        session_id=process.session_id,
        kind="process",
        source=_surface(tx, process),
        is_sent=False,
        ref=ref,
        parts=(TextPart(text=text),),
        person_id=process.owner_id,
    )
    feed.add_event(tx, process.session_id, "inbox", inbox_id)
    return inbox_id


def _surface(tx: Tx, process: Process) -> Source:
    """Where the agent's answer goes: to the place the session was opened at."""
    return sessions.get_session(tx, process.session_id).source


def _quoted(text: str) -> str:
    """Return text of unknown origin as a JSON string, so that it cannot pass for words of ours."""
    return json.dumps(text, ensure_ascii=False)
