"""What a terminal shows: deliveries to its address, messages that others send to its session, and its session's turn.

Every terminal keeps its own cursor: each of several terminals shows everything, whichever of them records deliveries as
sent. Numbers of deliveries can become visible out of order on PostgreSQL, so a view goes back a little and passes over
the deliveries that were shown before.
"""

from itertools import takewhile
from typing import Final

from keryx.clock import Micros
from keryx.core.approvals import views as approvals
from keryx.core.approvals.views import OpenQuestion
from keryx.core.people.tables import people
from keryx.core.turns.rules.turn import yields_to_others
from keryx.core.turns.tables import turns
from keryx.core.turns.views.pending_work import may_begin
from keryx.core.turns.views.terminal_rows import ReceivedMessage, ReplyElsewhere, ShownCall, ShownDelivery
from keryx.core.turns.views.terminal_session import LocalChat, find_session
from keryx.core.upkeep import tables as nodes
from keryx.core.values.turn_states import TurnId, TurnState
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = ["CurrentTurn", "OpenQuestion", "TerminalView", "ViewCursor", "first_cursor", "show_terminal"]

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
    """The live turn of a session, and its stored text since the last step."""

    id: TurnId
    state: TurnState
    text: str
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
    newest = tx.value("terminal.newest")
    recent = _list_deliveries(tx, str(chat.address), after=newest - BACK)
    return ViewCursor(after=newest, seen=frozenset(each.id for each in recent if not each.is_unfinished))


def show_terminal(tx: ReadTx, chat: LocalChat, cursor: ViewCursor) -> TerminalView:
    """Return what a terminal has to show and to do since its last view."""
    address = str(chat.address)
    newest = tx.value("terminal.newest")
    unfinished = tx.all(ShownDelivery, "terminal.list_unfinished", address=address, limit=ROWS_MAX)
    recent = _list_deliveries(tx, address, after=cursor.after - BACK)
    deliveries = {each.id: each for each in (*unfinished, *recent) if each.id not in cursor.seen}
    session_id = find_session(tx, chat)
    received, elsewhere, read_up_to = _read_session(tx, session_id, cursor, address=address)
    live = None if session_id is None else turns.find_live_turn(tx, session_id)
    # Turns of Keryx itself are not shown.
    turn = None if live is None or yields_to_others(live.purpose) else live
    calls, called_up_to = _read_calls(tx, session_id, None if turn is None else turn.id, cursor)
    queued, commands = tx.row("terminal.count_waiting", session_id=session_id) or (0, 0)
    trouble = None if session_id is None else turns.find_trouble(tx, session_id)
    return TerminalView(
        session_id=session_id,
        cursor=ViewCursor(after=newest, seen=cursor.seen, in_session=read_up_to, calls=called_up_to),
        deliveries=tuple(deliveries[number] for number in sorted(deliveries)),
        received=received,
        elsewhere=elsewhere,
        turn=None if turn is None else _current(tx, turn),
        calls=calls,
        queued=queued,
        commands=commands,
        is_due=session_id is not None and may_begin(tx, session_id),
        to_send=any(each.state == "ready" and each.due_at <= tx.now for each in unfinished),
        unfinished=len(unfinished),
        has_gateway=nodes.has_gateway(tx),
        trouble=None if trouble is None else trouble.text,
    )


def _list_deliveries(tx: ReadTx, address: str, *, after: int) -> list[ShownDelivery]:
    return tx.all(ShownDelivery, "terminal.list_after", address=address, after=after, limit=ROWS_MAX)


def _read_session(
    tx: ReadTx, session_id: str | None, cursor: ViewCursor, *, address: str
) -> tuple[tuple[ReceivedMessage, ...], tuple[ReplyElsewhere, ...], tuple[str, int, int] | None]:
    """Return what is new in the session, and how far it is read. A session that was just entered has nothing new."""
    if session_id is None:
        return (), (), None
    ended = tx.value("terminal.newest_ended", session_id=session_id) or 0
    if cursor.in_session is None or cursor.in_session[0] != session_id:
        return (), (), (session_id, tx.value("terminal.newest_received", session_id=session_id), ended)
    _session, last_received, last_ended = cursor.in_session
    # Items and turns of one session are added under its lock, so their numbers rise as they are committed.
    new = {"session_id": session_id, "limit": ROWS_MAX}
    received = tx.all(ReceivedMessage, "terminal.list_received", after=last_received, **new)
    elsewhere = tx.all(ReplyElsewhere, "terminal.list_elsewhere", address=address, after=last_ended, **new)
    last_received = received[-1].id if received else last_received
    return tuple(received), tuple(elsewhere), (session_id, last_received, ended)


def _read_calls(
    tx: ReadTx, session_id: str | None, turn_id: TurnId | None, cursor: ViewCursor
) -> tuple[tuple[ShownCall, ...], tuple[TurnId, int] | None]:
    """Return the new calls of the current turn and of turns ended since, and how far they are read.

    In a session that was just entered, return only the calls that still run.
    """
    before, after = cursor.calls or (None, 0)
    known = after if before == turn_id else 0
    calls = [] if turn_id is None else _list_calls(tx, turn_id, after=known)
    rest: list[ShownCall] = []
    if cursor.in_session is None or cursor.in_session[0] != session_id:
        calls = [each for each in calls if each.ended_at is None]
    else:
        # A turn may have begun and ended between two views.
        ended_after = cursor.in_session[2]
        for each, purpose in tx.rows(
            "terminal.list_ended", session_id=session_id, after=ended_after, limit=ROWS_MAX
        ):
            if not yields_to_others(purpose):
                rest += _list_calls(tx, each, after=after if each == before else 0)
    ended = takewhile(lambda each: each.ended_at is not None, calls)
    up_to = max((each.no for each in ended), default=known)
    return (*rest, *calls), None if turn_id is None else (turn_id, up_to)


def _list_calls(tx: ReadTx, turn_id: TurnId, *, after: int) -> list[ShownCall]:
    return tx.all(ShownCall, "terminal.list_calls", turn_id=turn_id, after=after)


def _current(tx: ReadTx, turn: turns.Turn) -> CurrentTurn:
    owner = people.find_owner(tx) if turn.state == "waiting" else None
    question = None if owner is None else approvals.find_open(tx, turn_id=turn.id, person_id=owner.id)
    return CurrentTurn(id=turn.id, state=turn.state, text=turns.text_so_far(tx, turn.id), question=question)
