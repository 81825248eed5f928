"""Sessions as people see them in lists: their name, their last words and their counters."""

from typing import Final, NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.session import EMPTY_LISTED, CloseReason, SessionId, SessionState
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.rules.title import TitleBy
from keryx.store.codec import source_from_json
from keryx.store.database import ReadTx


class Session(NamedTuple):
    """A session as it stood when it was read; times are microseconds UTC.

    A named tuple: a page of them costs little more than its rows.
    """

    key: SessionKey | None
    """The surface on which it is the current conversation; None when no surface points to it."""
    id: SessionId
    owner_id: int
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
    started_at: Micros
    last_active_at: Micros
    closed_at: Micros | None
    close_reason: CloseReason | None
    pinned_at: Micros | None
    archived_at: Micros | None
    deleted_at: Micros | None
    active_branch_no: int
    last_seq: int
    message_count: int
    """Messages on the active branch."""
    message_total: int
    """Messages kept in the session, those of other branches included."""
    tool_call_count: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    thinking_tokens: int
    cost_micros: int

    @property
    def source(self) -> Source:
        """Where the session was opened."""
        return source_from_json(self.source_json)


class ListPosition(NamedTuple):
    """Where in the order of a list a session stands: after it come those with less."""

    is_pinned: bool
    last_active_at: Micros
    id: str


class Filters(NamedTuple):
    """What a list is narrowed to; None means everything."""

    platform: str | None
    active_since: Micros
    project: str | None
    tag: str | None


TOP: Final = ListPosition(is_pinned=True, last_active_at=2**63 - 1, id="")
"""Before everything."""
UNPINNED: Final = TOP._replace(is_pinned=False)
"""After everything pinned."""


def walk(tx: ReadTx, audience_id: int, *, after: ListPosition, limit: int) -> list[Session]:
    """Return what one audience's list shows next in the section (pinned or not) of ``after``."""
    return tx.all(
        Session,
        "session_list.walk",
        audience_id=audience_id,
        pinned=int(after.is_pinned),
        last_active_at=after.last_active_at,
        id=after.id,
        limit=limit,
        empty_listed=EMPTY_LISTED,
    )


def merge(tx: ReadTx, person_id: int, filters: Filters, *, after: ListPosition, limit: int) -> list[Session]:
    """Return what a person's list shows next in the section of ``after``, over all audiences."""
    return tx.all(
        Session,
        "session_list.merge",
        person_id=person_id,
        pinned=int(after.is_pinned),
        last_active_at=after.last_active_at,
        id=after.id,
        limit=limit,
        empty_listed=EMPTY_LISTED,
        **filters._asdict(),
    )


def list_archived(
    tx: ReadTx, person_id: int, filters: Filters, *, after: ListPosition, limit: int
) -> list[Session]:
    """Return which archived sessions come next in the section of ``after``."""
    return tx.all(
        Session,
        "session_list.list_archived",
        person_id=person_id,
        pinned=int(after.is_pinned),
        last_active_at=after.last_active_at,
        id=after.id,
        limit=limit,
        **filters._asdict(),
    )


def find(tx: ReadTx, session_id: str, *, person_id: int) -> Session | None:
    """Return a session this person may see, or None."""
    return tx.one(Session, "session_list.find", session_id=session_id, person_id=person_id)


def count(tx: ReadTx, person_id: int, *, platform: str | None) -> tuple[int, int]:
    """Return how many sessions a person may see, and how many messages they hold."""
    row = tx.row("session_list.count", person_id=person_id, platform=platform)
    assert row is not None
    return row[0], row[1]
