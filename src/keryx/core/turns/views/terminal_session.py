"""A terminal's chat and its session: the session's title, items, turns and leases."""

from dataclasses import replace
from typing import NamedTuple

from keryx.config import Settings
from keryx.core.conversations.rules.message import decode_parts, text_of
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import sessions
from keryx.core.conversations.views.current_session import find_current
from keryx.core.deliveries.rules.route import Address
from keryx.core.people.rules.access import audience_of
from keryx.core.people.tables import people
from keryx.core.turns.tables import inbox, turns
from keryx.core.turns.views.pending_work import may_begin
from keryx.core.values.turn_states import TurnId, TurnState
from keryx.store.database import ReadTx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalChat:
    """The chat at one terminal: the source of its messages, and the settings that decide which session they join."""

    source: Source
    settings: Settings

    @property
    def address(self) -> Address:
        """The address that replies to the terminal go to."""
        return Address.of(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOutcome:
    """The state of a turn, and its last text in the transcript."""

    state: TurnState
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLease:
    """A lease that a terminal holds: on a turn, or (without one) on the account of a chat."""

    holder: str
    epoch: int
    host: str
    pid: int
    turn_id: TurnId | None = None
    session_id: str | None = None


class AccountHolder(NamedTuple):
    """The holder of an account's connector lease."""

    holder: str
    epoch: int


class TerminalProcess(NamedTuple):
    """The process that a terminal runs in."""

    host: str
    pid: int


def find_session(tx: ReadTx, chat: LocalChat) -> str | None:
    """Return the current session of the chat, or None before the first message."""
    owner = people.find_owner(tx)
    if owner is None:
        return None
    audience_id = people.find_audience(tx, audience_of(chat.source, owner.id))
    _key, found = find_current(
        tx, chat.source, person_id=owner.id, audience_id=audience_id, settings=chat.settings
    )
    return None if found is None else found.session_id


def is_at_work(tx: ReadTx, session_id: str) -> bool:
    """Return whether a turn of a session runs, or may begin now."""
    turn = turns.find_live_turn(tx, session_id)
    return (turn is not None and turn.state == "running") or may_begin(tx, session_id)


def find_outcome(tx: ReadTx, turn_id: TurnId) -> TurnOutcome:
    """Return the state of a turn and its last stored text."""
    turn = turns.get_turn(tx, turn_id)
    body = tx.value(
        "terminal.find_last_answer", session_id=turn.session_id, branch_no=turn.branch_no, turn_id=turn_id
    )
    return TurnOutcome(state=turn.state, text=None if body is None else text_of(decode_parts(body)))


def find_item(tx: ReadTx, inbox_id: int) -> inbox.InboxItem:
    """Return an accepted item."""
    item = inbox.find_item(tx, inbox_id)
    assert item is not None, "accepted items are kept"
    return item


def find_title(tx: ReadTx, session_id: str) -> str | None:
    """Return the title of a session, or None if it has none."""
    return sessions.get_session(tx, session_id).title


def list_leases(tx: ReadTx, chat: LocalChat) -> list[HeldLease]:
    """Return the leases of terminals on the account of a chat and on the running turn of its session."""
    platform, account = chat.address.platform, chat.address.account or ""
    sender = tx.one(AccountHolder, "terminal.find_sender", platform=platform, account=account)
    held = [] if sender is None else _of_terminal(tx, sender.holder, sender.epoch)
    session_id = find_session(tx, chat)
    turn = None if session_id is None else turns.find_live_turn(tx, session_id)
    if turn is None or turn.state != "running" or turn.stop_requested_at is not None:
        return held  # `recover` stops a turn that a person asked to stop, and keeps its text
    of_turn = _of_terminal(tx, turn.holder, turn.epoch)
    return [*held, *(replace(lease, turn_id=turn.id, session_id=turn.session_id) for lease in of_turn)]


def _of_terminal(tx: ReadTx, holder: str, epoch: int) -> list[HeldLease]:
    """Return the lease if a terminal holds it; nothing for a gateway, or for a terminal that ended normally."""
    process = tx.one(TerminalProcess, "terminal.find_process", holder=holder)
    return (
        [] if process is None else [HeldLease(holder=holder, epoch=epoch, host=process.host, pid=process.pid)]
    )
