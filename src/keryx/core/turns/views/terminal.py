"""What a terminal shows: deliveries to its address, messages that others send to its session, and its session's turn.

Every terminal keeps its own cursor: each of several terminals shows everything, whichever of them records deliveries as
sent. Numbers of deliveries can become visible out of order on PostgreSQL, so a view goes back a little and passes over
the deliveries that were shown before.
"""

from itertools import takewhile
from typing import Final

from keryx.clock import Micros
from keryx.core.approvals.views import open_questions
from keryx.core.approvals.views.open_questions import OpenQuestion
from keryx.core.people.tables import people
from keryx.core.turns.rules.turn import yields_to_others
from keryx.core.turns.tables import turns
from keryx.core.turns.views import terminal_rows
from keryx.core.turns.views.ready_sessions import may_begin
from keryx.core.turns.views.terminal_chat import LocalChat, find_session
from keryx.core.turns.views.terminal_rows import ReceivedMessage, ReplyElsewhere, ShownCall, ShownDelivery
from keryx.core.turns.views.turn import said_so_far
from keryx.core.upkeep.tables import nodes
from keryx.core.values.turn_states import TurnId, TurnState
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = [
    "CurrentTurn",
    "OpenQuestion",
    "ReceivedMessage",
    "ReplyElsewhere",
    "ShownCall",
    "ShownDelivery",
    "TerminalView",
    "ViewCursor",
    "first_cursor",
    "show_terminal",
]

ROWS_MAX: Final = 500
BACK: Final = 500
"""How many numbers a view goes back: far more than transactions can have taken and not committed at one moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCursor:
    """How far a terminal has read."""

    after: int
    """The number of the newest delivery at the last view."""
    seen: frozenset[int] = frozenset()
    """Deliveries that the terminal has shown, or that were finished before it began."""
    in_session: tuple[str, int, int] | None = None
    """The session that the terminal shows, its last message and its last ended turn."""
    calls: tuple[TurnId, int] | None = None
    """The running turn, and the last of its calls up to which all have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentTurn:
    """The turn of a session that has not ended, and its stored text since the last step."""

    id: TurnId
    state: TurnState
    said: str
    question: OpenQuestion | None = None
    """The question that the turn asks the owner, who is at the terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalView:
    """What a terminal has to show and to do."""

    session_id: str | None
    """The session of the chat; None before the first message."""
    cursor: ViewCursor
    """The cursor of the next view, once everything here is shown."""
    deliveries: tuple[ShownDelivery, ...]
    received: tuple[ReceivedMessage, ...]
    elsewhere: tuple[ReplyElsewhere, ...]
    """The replies of the session's turns to other addresses than this one."""
    turn: CurrentTurn | None
    calls: tuple[ShownCall, ...]
    """The calls of the current turn and of turns ended since the last view, if they are new or had not ended."""
    queued: int
    """Messages that wait for their turn."""
    commands: int
    """Commands that wait for a surface to answer them."""
    is_due: bool
    """Whether a turn may begin now."""
    to_send: bool
    """Whether a delivery to this chat is due."""
    unfinished: int
    """Deliveries to this chat that are not recorded as sent."""
    has_gateway: bool
    trouble: str | None = None
    """Why the answer does not come yet."""

    @property
    def news(self) -> list[ReceivedMessage | ShownDelivery | ReplyElsewhere]:
        """Everything new in the order of time; of one moment, messages from people come first."""
        dated: list[tuple[Micros, int, ReceivedMessage | ShownDelivery | ReplyElsewhere]] = [
            *((each.received_at, 0, each) for each in self.received),
            *((each.created_at, 1, each) for each in self.deliveries),
            *((each.created_at, 1, each) for each in self.elsewhere),
        ]
        return [each for _, _, each in sorted(dated, key=lambda item: (item[0], item[1], item[2].id))]

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing runs or waits here, or only a person's answer is missing."""
        is_busy = self.queued > 0 or self.commands > 0
        return not is_busy if self.turn is None else self.turn.state == "waiting"


def first_cursor(tx: ReadTx, chat: LocalChat) -> ViewCursor:
    """Return the cursor that a terminal begins with: every unfinished delivery to its address is new to it."""
    newest = terminal_rows.newest(tx)
    recent = terminal_rows.list_after(tx, str(chat.address), after=newest - BACK, limit=ROWS_MAX)
    return ViewCursor(after=newest, seen=frozenset(each.id for each in recent if not each.is_unfinished))


def show_terminal(tx: ReadTx, chat: LocalChat, cursor: ViewCursor) -> TerminalView:
    """Return what a terminal has to show and to do since its last view."""
    address = str(chat.address)
    newest = terminal_rows.newest(tx)
    unfinished = terminal_rows.list_unfinished(tx, address, limit=ROWS_MAX)
    recent = terminal_rows.list_after(tx, address, after=cursor.after - BACK, limit=ROWS_MAX)
    deliveries = {each.id: each for each in (*unfinished, *recent) if each.id not in cursor.seen}
    session_id = find_session(tx, chat)
    received, elsewhere, read_up_to = _read_session(tx, session_id, cursor, address=address)
    live = None if session_id is None else turns.find_live_turn(tx, session_id)
    # Turns that Keryx begins by itself are not shown, and nobody waits for them.
    turn = None if live is None or yields_to_others(live.purpose) else live
    calls, called_up_to = _read_calls(tx, session_id, None if turn is None else turn.id, cursor)
    waiting = [] if session_id is None else terminal_rows.list_waiting(tx, session_id)
    return TerminalView(
        session_id=session_id,
        cursor=ViewCursor(after=newest, seen=cursor.seen, in_session=read_up_to, calls=called_up_to),
        deliveries=tuple(deliveries[number] for number in sorted(deliveries)),
        received=received,
        elsewhere=elsewhere,
        turn=None if turn is None else _current(tx, turn),
        calls=calls,
        queued=sum(each.kind != "command" and not each.is_own for each in waiting),
        commands=sum(each.kind == "command" for each in waiting),
        is_due=session_id is not None and may_begin(tx, session_id),
        to_send=any(each.state == "ready" and each.due_at <= tx.now for each in unfinished),
        unfinished=len(unfinished),
        has_gateway=nodes.has_gateway(tx),
        trouble=_trouble(tx, session_id),
    )


def _trouble(tx: ReadTx, session_id: str | None) -> str | None:
    found = None if session_id is None else turns.find_trouble(tx, session_id)
    return None if found is None else found.told


def _read_session(
    tx: ReadTx, session_id: str | None, cursor: ViewCursor, *, address: str
) -> tuple[tuple[ReceivedMessage, ...], tuple[ReplyElsewhere, ...], tuple[str, int, int] | None]:
    """Return what is new in the session, and how far it is read. A session that was just entered has nothing new."""
    if session_id is None:
        return (), (), None
    ended = terminal_rows.newest_ended(tx, session_id)
    if cursor.in_session is None or cursor.in_session[0] != session_id:
        return (), (), (session_id, terminal_rows.newest_heard(tx, session_id), ended)
    _session, last_received, last_ended = cursor.in_session
    # Items and turns of one session are added under its lock, so their numbers rise as they are committed.
    received = tuple(terminal_rows.list_heard(tx, session_id, after=last_received, limit=ROWS_MAX))
    elsewhere = terminal_rows.list_elsewhere(
        tx, session_id, address=address, after=last_ended, limit=ROWS_MAX
    )
    return received, tuple(elsewhere), (session_id, received[-1].id if received else last_received, ended)


def _read_calls(
    tx: ReadTx, session_id: str | None, turn_id: TurnId | None, cursor: ViewCursor
) -> tuple[tuple[ShownCall, ...], tuple[TurnId, int] | None]:
    """Return the new calls of the current turn and of turns ended since, and how far they are read.

    In a session that was just entered, return only the calls that still run.
    """
    before, after = cursor.calls or (None, 0)
    known = after if before == turn_id else 0
    calls = [] if turn_id is None else terminal_rows.list_calls(tx, turn_id, after=known)
    rest: list[ShownCall] = []
    if cursor.in_session is None or cursor.in_session[0] != session_id:
        calls = [each for each in calls if each.ended_at is None]
    else:
        # A turn may have begun and ended between two views.
        for each, purpose in terminal_rows.list_ended(
            tx, session_id, after=cursor.in_session[2], limit=ROWS_MAX
        ):
            if not yields_to_others(purpose):
                rest += terminal_rows.list_calls(tx, each, after=after if each == before else 0)
    ended = takewhile(lambda each: each.ended_at is not None, calls)
    up_to = max((each.no for each in ended), default=known)
    return (*rest, *calls), None if turn_id is None else (turn_id, up_to)


def _current(tx: ReadTx, turn: turns.Turn) -> CurrentTurn:
    owner = people.find_owner(tx) if turn.state == "waiting" else None
    question = None if owner is None else open_questions.find_open(tx, turn_id=turn.id, person_id=owner.id)
    return CurrentTurn(id=turn.id, state=turn.state, said=said_so_far(tx, turn.id), question=question)
