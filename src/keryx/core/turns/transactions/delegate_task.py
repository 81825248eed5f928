"""Delegate a task: open a child session and add the task to its inbox.

A repeated call finds its child session. The child session has the person and the audience of its parent. No list and no
surface shows it, and its answer goes only to the call.
"""

from collections.abc import Sequence
from dataclasses import replace

from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import branches, feed, session_changes, sessions
from keryx.core.conversations.transactions.open_session import inherited_settings, open_session
from keryx.core.people.tables import people
from keryx.core.turns.rules.delegation import DELEGATE, TASKS_MAX, Delegation
from keryx.core.turns.tables import inbox, turns
from keryx.core.turns.transactions.inbox_items import queue_item
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

GIVER = "the agent that gave the task"
"""The author's name in the transcript of the child session."""
STOPPING = "The turn is being stopped."
TOO_MANY = f"A turn may delegate {TASKS_MAX} tasks; do the rest here, or in the next turn."


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task for a child session: its text, its tools and the key of the call that delegates it."""

    key: str
    text: str
    tools: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegated:
    """The child session and the inbox item of the task."""

    session_id: SessionId
    inbox_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotDelegated:
    """The task was not delegated."""

    reason: str


def delegate_task(
    tx: Tx, ids: Ids, task: Task, *, session_id: SessionId, person_id: int
) -> Delegated | NotDelegated:
    """Open a child session for a task of the session's running turn, or return the one that this call has opened.

    Raises ``InvalidValue`` if the child session would be too deep.
    """
    ref = f"call:{task.key}"
    known = inbox.find_internal(tx, ref)
    if known is not None:
        return Delegated(session_id=SessionId(known.session_id), inbox_id=known.id)
    parent = sessions.get_visible(tx, session_id, person_id=person_id)
    # After this lock, a request to stop the turn finds the task.
    sessions.lock_session(tx, session_id)
    turn = turns.find_live_turn(tx, session_id)
    if turn is None or turn.stop_requested_at is not None:
        return NotDelegated(reason=STOPPING)
    if not _has_room(tx, turn, task):
        return NotDelegated(reason=TOO_MANY)
    above = branches.find_delegation(tx, session_id)
    delegation = Delegation(key=task.key, depth=1 if above is None else above.depth + 1, tools=task.tools)
    source = _source(turn.origin or parent.source)
    child = open_session(
        tx,
        ids,
        source=source,
        owner=people.get_person(tx, person_id),
        initial=replace(inherited_settings(parent), audience_id=parent.audience_id),
    )
    # A closed session is on no surface, and an archived one in no list by default.
    sessions.close_session(tx, child, reason="done")
    session_changes.set_archived(tx, child, archived=True)
    feed.add_event(tx, child, "session.closed")
    branches.add_link(
        tx, kind="delegation", from_session_id=session_id, to_session_id=child, origin=str(delegation)
    )
    inbox_id = queue_item(
        tx,
        session_id=child,
        kind="agent",
        purpose="task",
        is_internal=True,
        source=source,
        ref=ref,
        parts=(TextPart(text=task.text),),
        person_id=person_id,
    )
    return Delegated(session_id=child, inbox_id=inbox_id)


def _has_room(tx: Tx, turn: turns.Turn, task: Task) -> bool:
    """Return whether the call is among the turn's first delegations, in the order of the calls."""
    calls = [step.idempotency_key for step in turns.list_steps(tx, turn.id) if step.name == DELEGATE]
    return task.key in calls[:TASKS_MAX]


def _source(source: Source) -> Source:
    """Return the chat of the parent turn: the child has the same permissions."""
    return Source(
        platform=source.platform,
        account=source.account,
        chat_id=source.chat_id,
        chat_type=source.chat_type,
        chat_name=source.chat_name,
        thread_id=source.thread_id,
        user_name=GIVER,
    )
