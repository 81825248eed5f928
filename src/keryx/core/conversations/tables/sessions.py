"""The rows of sessions: their owners, names, states and counters."""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

from keryx.clock import Micros
from keryx.core.approvals import tables as approvals
from keryx.core.conversations.rules.message import NewMessage, usage_of
from keryx.core.conversations.rules.session import CloseReason, SessionId, SessionState
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.rules.title import TitleBy
from keryx.core.turns.rules.lease import Lease
from keryx.errors import NotFound
from keryx.store.codec import clean_text, source_from_json, to_json
from keryx.store.database import RaceLost, ReadTx, Tx

R = TypeVar("R")

_NULL: Final = (
    *("display_name", "title", "title_by", "preview", "project_id", "workspace", "model", "model_settings"),
    *("personality", "closed_at", "close_reason", "pinned_at", "archived_at", "reset_reason"),
)
_ZERO: Final = ("active_branch_no", "last_branch_no", "last_seq", "message_count", "flushed_seq")


class Session(NamedTuple):
    """A session as it was when it was read; times are microseconds UTC.

    A named tuple, because lists read thousands of sessions.
    """

    key: SessionKey | None
    """A session key that points to the session; None if no key does."""
    id: SessionId
    profile: str
    owner_id: int
    audience_id: int
    state: SessionState
    platform: str
    source_json: str
    display_name: str | None
    title: str | None
    title_by: TitleBy | None
    preview: str | None
    project_id: int | None
    workspace: str | None
    model: str | None
    model_settings: str | None
    personality: str | None
    started_at: Micros
    last_active_at: Micros
    closed_at: Micros | None
    close_reason: CloseReason | None
    pinned_at: Micros | None
    archived_at: Micros | None
    deleted_at: Micros | None
    active_branch_no: int
    last_branch_no: int
    last_seq: int
    feed_no: int
    message_count: int
    """Messages on the active branch."""
    message_total: int
    """Messages on all branches."""
    tool_call_count: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    thinking_tokens: int
    cost_micros: int
    reset_reason: str | None
    flushed_seq: int

    @property
    def source(self) -> Source:
        """The source at which the session was opened."""
        return source_from_json(self.source_json)

    @property
    def name(self) -> str:
        """The name that people see: the title, else the preview, else the id."""
        return self.title or self.preview or self.id


class LockedSession(NamedTuple):
    """The columns that locking a session returns."""

    state: str
    active_branch_no: int
    last_branch_no: int
    last_seq: int
    message_count: int


class MessagePlace(NamedTuple):
    """The numbers reserved for a message."""

    seq: int
    feed_number: int
    branch_no: int


def add_session(
    tx: Tx,
    *,
    id: str,  # noqa: A002 - named as the column
    source: Source,
    owner_id: int,
    audience_id: int,
    **columns: object,
) -> None:
    """Add a session; ``columns`` replace the defaults: an open session from now, other columns NULL or 0.

    Raise ``RaceLost`` if the id is in use.
    """
    defaults = dict.fromkeys(_NULL) | dict.fromkeys(_ZERO, 0)
    times = {"started_at": tx.now, "last_active_at": tx.now}
    added = tx.run(
        "sessions.add",
        id=id,
        platform=source.platform,
        source=to_json(source.to_dict()),
        owner_id=owner_id,
        audience_id=audience_id,
        **(defaults | times | {"profile": "main", "state": "open"} | columns),
    )
    if not added:
        raise RaceLost


def find_session(tx: ReadTx, session_id: str) -> Session | None:
    """Return a session, or None."""
    return tx.one(Session, "sessions.find", session_id=session_id)


def get_session(tx: ReadTx, session_id: str) -> Session:
    """Return a session without a check of the person, for the system's own work."""
    return _existing(find_session(tx, session_id), session_id)


def get_visible(tx: ReadTx, session_id: str, *, person_id: int) -> Session:
    """Return a session. Raise ``NotFound`` if it does not exist or the person may not see it."""
    session = tx.one(Session, "sessions.find_visible", session_id=session_id, person_id=person_id)
    if session is None:
        raise NotFound(f"There is no session {session_id} that you may see.")
    return session


def lock_session(tx: Tx, session_id: str) -> LockedSession:
    """Lock a session until the transaction ends."""
    return _existing(tx.one(LockedSession, "sessions.lock", session_id=session_id), session_id)


def _existing(session: R | None, session_id: str) -> R:
    if session is None:
        raise NotFound(f"There is no session {session_id}.")
    return session


def take_place(
    tx: Tx,
    session_id: str,
    counts: Mapping[str, object],
    *,
    lease: Lease | None = None,
    person_id: int | None = None,
) -> MessagePlace | None:
    """Count one more message and reserve its numbers, for the holder of the lease or, without one, for a person.

    ``counts`` are the other parameters. Return None if the lease is lost; for a person, if a turn runs or the person
    may not see the session.
    """
    return tx.one(
        MessagePlace,
        "sessions.append",
        session_id=session_id,
        person_id=person_id,
        holder=None if lease is None else lease.holder,
        epoch=None if lease is None else lease.epoch,
        **counts,
    )


def count_unsaid(tx: Tx, session_id: str, answer: NewMessage) -> None:
    """Count the usage of an answer that is not in the transcript."""
    tx.run(
        "sessions.count_unsaid",
        session_id=session_id,
        **usage_of(answer),
    )


def close_session(tx: Tx, session_id: str, *, reason: str) -> bool:
    """Close a session and delete its standing approvals; return whether it was open."""
    if tx.run("sessions.close", session_id=session_id, reason=reason) != 1:
        return False
    approvals.drop_rules_of_session(tx, session_id)
    return True


def reopen_session(tx: Tx, session_id: str) -> bool:
    """Open a closed session; return whether it was closed."""
    return tx.run("sessions.reopen", session_id=session_id) == 1


def take_reset_reason(tx: Tx, session_id: str) -> None:
    """Clear the reset reason after the agent received it."""
    tx.run("sessions.take_reset_reason", session_id=session_id)


def set_display_name(tx: Tx, session_id: str, display_name: str) -> bool:
    """Set the platform's name of the chat; return whether it changed."""
    changed = tx.run(
        "sessions.set_display_name", session_id=session_id, display_name=clean_text(display_name)
    )
    return changed == 1


def recount(tx: Tx, session_id: str) -> None:
    """Compute the counters of a session from its messages and turns."""
    tx.run("sessions.recount", session_id=session_id)
