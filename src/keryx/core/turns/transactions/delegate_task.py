"""Give a task away: a session of its own for it, and the item that lets a turn begin there.

A call that runs again finds the session it made. A session belongs to the person and the audience of the one that
gave the task, stands in no list and on no surface, and what is said in it goes nowhere but back to the call.
"""

from collections.abc import Sequence
from dataclasses import replace

from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import branches, feed, session_changes, sessions
from keryx.core.conversations.transactions.open_session import inherited_settings, open_session
from keryx.core.people.tables import people
from keryx.core.turns.rules.delegation import DELEGATE, TASKS_MAX, Delegation, task_ref
from keryx.core.turns.tables import inbox, turns
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass

GIVER = "the agent that gave the task"
"""Whose words the task is, as the transcript names them."""
STOPPING = "The turn is being stopped."
TOO_MANY = f"A turn may give away {TASKS_MAX} tasks; do the rest here, or in the next turn."


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be done, with which tools, and by which call it is given away."""

    key: str
    text: str
    tools: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegated:
    """The session that works on it, and the item whose fate tells how that went."""

    session_id: SessionId
    inbox_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotDelegated:
    """Nothing was given away."""

    reason: str


def delegate_task(
    tx: Tx, ids: Ids, task: Task, *, session_id: SessionId, person_id: int
) -> Delegated | NotDelegated:
    """Open a session for a task of the session's running turn, or return the one that this call opened before.

    Raises ``InvalidValue`` where too many sessions stand above it already.
    """
    ref = task_ref(task.key)
    known = inbox.find_unsent(tx, ref)
    if known is not None:
        return Delegated(session_id=SessionId(known.session_id), inbox_id=known.id)
    parent = sessions.get_visible(tx, session_id, person_id=person_id)
    # From here on nobody asks the turn to stop: whoever does it later finds the task.
    sessions.lock_session(tx, session_id)
    turn = turns.find_live_turn(tx, session_id)
    if turn is None or turn.stop_requested_at is not None:
        return NotDelegated(reason=STOPPING)
    if not _has_room(tx, turn, task):
        return NotDelegated(reason=TOO_MANY)
    above = branches.find_delegation(tx, session_id)
    given = Delegation(key=task.key, depth=1 if above is None else above.depth + 1, tools=task.tools)
    source = _source(turn.origin or parent.source)
    child = open_session(
        tx,
        ids,
        source=source,
        owner=people.get_person(tx, person_id),
        initial=replace(inherited_settings(parent), audience_id=parent.audience_id),
    )
    # On no surface, as everything that is closed, and in no list unless one asks for what is put away.
    sessions.close_session(tx, child, reason="done")
    session_changes.set_archived(tx, child, archived=True)
    feed.add_event(tx, child, "session.closed")
    branches.add_link(
        tx, kind="delegation", from_session_id=session_id, to_session_id=child, origin=str(given)
    )
    inbox_id = inbox.add_item(
        tx,
        session_id=child,
        kind="agent",
        purpose="task",
        is_sent=False,
        source=source,
        ref=ref,
        parts=(TextPart(text=task.text),),
        person_id=person_id,
    )
    feed.add_event(tx, child, "inbox", inbox_id)
    return Delegated(session_id=child, inbox_id=inbox_id)


def _has_room(tx: Tx, turn: turns.Turn, task: Task) -> bool:
    """Say whether the call is among the first that give tasks away; their order decides, not who is faster."""
    calls = [step.idempotency_key for step in turns.list_steps(tx, turn.id) if step.name == DELEGATE]
    return task.key in calls[:TASKS_MAX]


def _source(source: Source) -> Source:
    """Return the place that the turn above answers: what its people and its platform may use is the same here."""
    return Source(
        platform=source.platform,
        account=source.account,
        chat_id=source.chat_id,
        chat_type=source.chat_type,
        chat_name=source.chat_name,
        thread_id=source.thread_id,
        user_name=GIVER,
    )
