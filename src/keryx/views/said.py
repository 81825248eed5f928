"""What a terminal shows: what is said at its address, what others say in its conversation, and who is at it.

A terminal keeps its own place: every one of several shows everything, whoever records it as sent. Numbers of
deliveries can become visible out of order on PostgreSQL, so a look goes back a little and names what it saw before.
"""

from itertools import takewhile
from typing import Final

from keryx.clock import Micros
from keryx.config import Settings
from keryx.domain.message import text_of
from keryx.domain.route import Address
from keryx.domain.session_key import key_for
from keryx.domain.source import Source
from keryx.domain.turn import TurnId, TurnState, gives_way
from keryx.store.database import ReadTx
from keryx.store.tables import approvals, inbox, keys, nodes, people, said, sessions, turns
from keryx.store.tables.approvals import OpenQuestion
from keryx.store.tables.said import Call, Heard, SaidElsewhere, Spoken
from keryx.values import dataclass
from keryx.views.turn import said_so_far

__all__ = [
    "Call",
    "EndedTurn",
    "Heard",
    "HeldTurn",
    "Holder",
    "Look",
    "OpenQuestion",
    "Place",
    "SaidElsewhere",
    "Since",
    "Spoken",
    "find_end",
    "find_item",
    "find_name",
    "is_at_work",
    "is_due",
    "list_holders",
    "look",
    "start",
]

ROWS_MAX: Final = 500
BACK: Final = 500
"""How many numbers a look goes back: far more than can be given away and not committed at one moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A terminal: where its messages come from, and what decides to which conversation they belong."""

    source: Source
    settings: Settings

    @property
    def address(self) -> Address:
        """Where its answers go."""
        return Address.of(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """How far a terminal has looked."""

    after: int
    """The number of the newest delivery at the last look."""
    seen: frozenset[int] = frozenset()
    """Deliveries that it has shown, or that were finished before it began."""
    heard: tuple[str, int, int] | None = None
    """The session it shows, and the last thing said there and the last turn ended there that it knows of."""
    calls: tuple[TurnId, int] | None = None
    """The turn that was under way, and the last of its calls before which all have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTurn:
    """A session's turn that has not ended, and what it has said since its last step, as far as the store knows."""

    id: TurnId
    state: TurnState
    said: str
    question: OpenQuestion | None = None
    """What it waits for the owner, who is at the terminal, to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What there is to show, and to do."""

    session_id: str | None
    """The conversation of this place; None before the first message."""
    since: Since
    """To look from next time, once everything here is shown."""
    spoken: tuple[Spoken, ...]
    heard: tuple[Heard, ...]
    elsewhere: tuple[SaidElsewhere, ...]
    """What the session's turns answered on other surfaces, and not here."""
    turn: HeldTurn | None
    calls: tuple[Call, ...]
    """What that turn, and those that have ended since the last look, called since, or had not ended by then."""
    queued: int
    """Messages that wait for their turn."""
    commands: int
    """Commands that wait for a surface to answer them."""
    is_due: bool
    """Whether a turn may begin now."""
    to_send: bool
    """Whether something waits to be claimed for this place, and may be now."""
    unfinished: int
    """Deliveries to this place that are not recorded as sent."""
    has_gateway: bool
    trouble: str | None = None
    """Why what is waited for does not come."""

    @property
    def news(self) -> list[Heard | Spoken | SaidElsewhere]:
        """What was said, by people and to them, in the order of time; of one moment, what people said first."""
        said_at: list[tuple[Micros, int, Heard | Spoken | SaidElsewhere]] = [
            *((each.received_at, 0, each) for each in self.heard),
            *((each.created_at, 1, each) for each in self.spoken),
            *((each.created_at, 1, each) for each in self.elsewhere),
        ]
        return [each for _, _, each in sorted(said_at, key=lambda item: (item[0], item[1], item[2].id))]

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing goes on here, or only a person's answer is missing."""
        is_busy = self.queued > 0 or self.commands > 0
        return not is_busy if self.turn is None else self.turn.state == "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTurn:
    """How a turn stands, and the last thing it said that was kept."""

    state: TurnState
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A terminal that holds a turn, or (without one) the account of a place."""

    holder: str
    epoch: int
    host: str
    pid: int
    turn_id: TurnId | None = None
    session_id: str | None = None


def start(tx: ReadTx, place: Place) -> Since:
    """Return where a terminal begins: everything unfinished at its address is news to it."""
    newest = said.newest(tx)
    recent = said.list_after(tx, str(place.address), after=newest - BACK, limit=ROWS_MAX)
    return Since(after=newest, seen=frozenset(each.id for each in recent if not each.is_unfinished))


def look(tx: ReadTx, place: Place, since: Since) -> Look:
    """Return what a terminal has to show since its last look."""
    address = str(place.address)
    newest = said.newest(tx)
    unfinished = said.list_unfinished(tx, address, limit=ROWS_MAX)
    recent = said.list_after(tx, address, after=since.after - BACK, limit=ROWS_MAX)
    spoken = {each.id: each for each in (*unfinished, *recent) if each.id not in since.seen}
    session_id = _find_session(tx, place)
    heard, elsewhere, heard_up_to = _hear(tx, session_id, since, address=address)
    live = None if session_id is None else turns.find_live_turn(tx, session_id)
    # What Keryx does by itself is nobody's business, and nobody waits for it.
    turn = None if live is None or gives_way(live.purpose) else live
    calls, called_up_to = _watch_calls(tx, session_id, None if turn is None else turn.id, since)
    waiting = [] if session_id is None else said.list_waiting(tx, session_id)
    return Look(
        session_id=session_id,
        since=Since(after=newest, seen=since.seen, heard=heard_up_to, calls=called_up_to),
        spoken=tuple(spoken[number] for number in sorted(spoken)),
        heard=heard,
        elsewhere=elsewhere,
        turn=None if turn is None else _held(tx, turn),
        calls=calls,
        queued=sum(each.kind != "command" and not each.is_own for each in waiting),
        commands=sum(each.kind == "command" for each in waiting),
        is_due=session_id is not None and is_due(tx, session_id),
        to_send=any(each.state == "ready" and each.due_at <= tx.now for each in unfinished),
        unfinished=len(unfinished),
        has_gateway=nodes.has_gateway(tx),
        trouble=_trouble(tx, session_id),
    )


def _trouble(tx: ReadTx, session_id: str | None) -> str | None:
    found = None if session_id is None else turns.find_trouble(tx, session_id)
    return None if found is None else found.told


def is_due(tx: ReadTx, session_id: str) -> bool:
    """Say whether a turn of a session may begin now: something waits and none lives, or its question is answered."""
    kinds = [each.kind for each in said.list_waiting(tx, session_id) if each.ready_at <= tx.now]
    turn = turns.find_live_turn(tx, session_id)
    if turn is None:
        return any(kind != "command" for kind in kinds)
    return turn.state == "waiting" and "approval" in kinds


def is_at_work(tx: ReadTx, session_id: str) -> bool:
    """Say whether a turn of a session runs, or may begin now."""
    turn = turns.find_live_turn(tx, session_id)
    return (turn is not None and turn.state == "running") or is_due(tx, session_id)


def find_end(tx: ReadTx, turn_id: TurnId) -> EndedTurn:
    """Return how a turn stands, and what stays of it."""
    turn = turns.get_turn(tx, turn_id)
    parts = said.last_words(tx, session_id=turn.session_id, branch_no=turn.branch_no, turn_id=turn_id)
    return EndedTurn(state=turn.state, text=None if parts is None else text_of(parts))


def find_item(tx: ReadTx, inbox_id: int) -> inbox.InboxItem:
    """Return what became of something that was accepted."""
    item = inbox.find_item(tx, inbox_id)
    assert item is not None, "what was accepted is kept"
    return item


def find_name(tx: ReadTx, session_id: str) -> str | None:
    """Return the title of a session, if it has one."""
    return sessions.get_session(tx, session_id).title


def list_holders(tx: ReadTx, place: Place) -> list[Holder]:
    """Return the terminals that hold the account of a place, or the turn of its conversation."""
    held: list[Holder] = []
    address = place.address
    sender = said.find_sender(tx, platform=address.platform, account=address.account or "")
    process = None if sender is None else said.find_process(tx, sender.holder)
    if sender is not None and process is not None:
        held.append(Holder(holder=sender.holder, epoch=sender.epoch, host=process.host, pid=process.pid))
    session_id = _find_session(tx, place)
    turn = None if session_id is None else turns.find_live_turn(tx, session_id)
    if turn is None or turn.state != "running" or turn.stop_requested_at is not None:
        return held  # one that a person wanted stopped is stopped by `recover`, which keeps what it said
    process = said.find_process(tx, turn.holder)
    if process is not None:
        held.append(
            Holder(
                holder=turn.holder,
                epoch=turn.epoch,
                host=process.host,
                pid=process.pid,
                turn_id=turn.id,
                session_id=turn.session_id,
            )
        )
    return held


def _find_session(tx: ReadTx, place: Place) -> str | None:
    owner = people.find_owner(tx)
    if owner is None:
        return None
    settings = place.settings
    key = key_for(
        place.source,
        settings.scope,
        profile=settings.profile,
        first_account=settings.first_accounts.get(place.source.platform),
        person_id=owner.id,
    )
    found = keys.find_key(tx, key)
    return None if found is None else found.session_id


def _hear(
    tx: ReadTx, session_id: str | None, since: Since, *, address: str
) -> tuple[tuple[Heard, ...], tuple[SaidElsewhere, ...], tuple[str, int, int] | None]:
    """Return what is new in the session, and up to where; in one that was just entered, nothing is."""
    if session_id is None:
        return (), (), None
    ended = said.newest_ended(tx, session_id)
    if since.heard is None or since.heard[0] != session_id:
        return (), (), (session_id, said.newest_heard(tx, session_id), ended)
    _session, last_heard, last_ended = since.heard
    # Items and turns of one session are added under its lock, so their numbers rise as they are committed.
    heard = tuple(said.list_heard(tx, session_id, after=last_heard, limit=ROWS_MAX))
    elsewhere = said.list_elsewhere(tx, session_id, address=address, after=last_ended, limit=ROWS_MAX)
    return heard, tuple(elsewhere), (session_id, heard[-1].id if heard else last_heard, ended)


def _watch_calls(
    tx: ReadTx, session_id: str | None, turn_id: TurnId | None, since: Since
) -> tuple[tuple[Call, ...], tuple[TurnId, int] | None]:
    """Return the calls of the turn under way and of those ended since, and up to where; else, those that still run."""
    before, after = since.calls or (None, 0)
    known = after if before == turn_id else 0
    calls = [] if turn_id is None else said.list_calls(tx, turn_id, after=known)
    rest: list[Call] = []
    if since.heard is None or since.heard[0] != session_id:
        calls = [each for each in calls if each.ended_at is None]
    else:
        # A turn may have begun and ended between two looks.
        for each, purpose in said.list_ended(tx, session_id, after=since.heard[2], limit=ROWS_MAX):
            if not gives_way(purpose):
                rest += said.list_calls(tx, each, after=after if each == before else 0)
    ended = takewhile(lambda each: each.ended_at is not None, calls)
    up_to = max((each.no for each in ended), default=known)
    return (*rest, *calls), None if turn_id is None else (turn_id, up_to)


def _held(tx: ReadTx, turn: turns.Turn) -> HeldTurn:
    owner = people.find_owner(tx) if turn.state == "waiting" else None
    question = None if owner is None else approvals.find_open(tx, turn_id=turn.id, person_id=owner.id)
    return HeldTurn(id=turn.id, state=turn.state, said=said_so_far(tx, turn.id), question=question)
