"""The rows that a terminal shows: deliveries to its address, messages to its session, and calls of its turns."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.message import Part, ToolCallPart, ToolResultPart, decode_parts, text_of
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.delivery import DeliveryKind, DeliveryState
from keryx.core.turns.rules.inbox import InboxKind
from keryx.core.turns.rules.turn import must_record_start
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect, StepState, TurnId, TurnPurpose
from keryx.store.codec import source_from_json
from keryx.store.database import ReadTx


class ShownDelivery(NamedTuple):
    """A delivery."""

    id: int
    turn_id: int | None
    kind: DeliveryKind
    state: DeliveryState
    body: str
    idempotency_key: str
    due_at: Micros
    maybe_repeated_at: Micros | None
    created_at: Micros

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content."""
        return decode_parts(self.body)

    @property
    def is_unfinished(self) -> bool:
        """Whether the delivery is ready, or being sent."""
        return self.state in ("ready", "sending")


class ReceivedMessage(NamedTuple):
    """A message or command that a session received."""

    id: int
    ref: str
    source_json: str
    body: str
    person: str | None
    received_at: Micros

    @property
    def source(self) -> Source:
        """The chat that the message came from."""
        return source_from_json(self.source_json)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content."""
        return decode_parts(self.body)


class ReplyElsewhere(NamedTuple):
    """A reply of a session's turn to another address than the terminal's."""

    turn_id: int
    body: str
    created_at: Micros

    @property
    def id(self) -> int:
        """The number that orders replies of one moment."""
        return self.turn_id

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content."""
        return decode_parts(self.body)


class AccountHolder(NamedTuple):
    """The holder of an account's connector lease."""

    holder: str
    epoch: int


class TerminalProcess(NamedTuple):
    """The process that a terminal runs in."""

    host: str
    pid: int


def newest(tx: ReadTx) -> int:
    """Return the number of the newest delivery; 0 where there is none."""
    number: int = tx.value("terminal.newest")
    return number


def list_after(tx: ReadTx, address: str, *, after: int, limit: int) -> list[ShownDelivery]:
    """Return the deliveries to an address after a number, oldest first."""
    return tx.all(ShownDelivery, "terminal.list_after", address=address, after=after, limit=limit)


def list_unfinished(tx: ReadTx, address: str, *, limit: int) -> list[ShownDelivery]:
    """Return what is still to be said at an address, oldest first."""
    return tx.all(ShownDelivery, "terminal.list_unfinished", address=address, limit=limit)


def newest_heard(tx: ReadTx, session_id: str) -> int:
    """Return the number of the last thing said to a session; 0 where there is none."""
    number: int = tx.value("terminal.newest_heard", session_id=session_id)
    return number


def list_heard(tx: ReadTx, session_id: str, *, after: int, limit: int) -> list[ReceivedMessage]:
    """Return what people said to a session after a number, oldest first."""
    return tx.all(ReceivedMessage, "terminal.list_heard", session_id=session_id, after=after, limit=limit)


def newest_ended(tx: ReadTx, session_id: str) -> int:
    """Return the number of the last turn of a session that has ended; 0 where there is none."""
    row = tx.row("terminal.newest_ended", session_id=session_id)
    return 0 if row is None else row[0]


def list_ended(tx: ReadTx, session_id: str, *, after: int, limit: int) -> list[tuple[TurnId, TurnPurpose]]:
    """Return a session's turns after a number that have ended, with what each was for, oldest first."""
    rows = tx.rows("terminal.list_ended", session_id=session_id, after=after, limit=limit)
    return [(TurnId(turn_id), purpose) for turn_id, purpose in rows]


def list_elsewhere(
    tx: ReadTx, session_id: str, *, address: str, after: int, limit: int
) -> list[ReplyElsewhere]:
    """Return what a session's turns after a number said at other places than this, oldest first."""
    return tx.all(
        ReplyElsewhere,
        "terminal.list_elsewhere",
        session_id=session_id,
        address=address,
        after=after,
        limit=limit,
    )


class WaitingItem(NamedTuple):
    """Something that waits: its kind, and whether Keryx itself asks for it."""

    kind: InboxKind
    is_own: bool


def list_waiting(tx: ReadTx, session_id: str) -> list[WaitingItem]:
    """Return what waits in a session, oldest first."""
    rows = tx.rows("terminal.list_waiting", session_id=session_id)
    return [WaitingItem(kind, bool(is_own)) for kind, is_own in rows]


def last_words(tx: ReadTx, *, session_id: str, branch_no: int, turn_id: int) -> tuple[Part, ...] | None:
    """Return the last thing a turn said that was kept, or None."""
    row = tx.row("terminal.last_words", session_id=session_id, branch_no=branch_no, turn_id=turn_id)
    return None if row is None else decode_parts(row[0])


class ShownCall(NamedTuple):
    """A tool call of a turn."""

    turn_id: int
    no: int
    call_id: str
    session_id: str
    call_seq: int
    name: str
    effect: StepEffect
    state: StepState
    started_at: Micros | None
    ended_at: Micros | None
    called_at: Micros
    body: str
    result: str | None

    @property
    def said(self) -> str:
        """The text before this call and the other calls of the same message."""
        return text_of(decode_parts(self.body))

    @property
    def arguments(self) -> JsonValue:
        """The arguments of the call."""
        calls = (part for part in decode_parts(self.body) if isinstance(part, ToolCallPart))
        return next((part.arguments for part in calls if part.call_id == self.call_id), None)

    @property
    def has_begun(self) -> bool:
        """Whether the call runs or ran; a call that was not allowed never did."""
        return self.started_at is not None or not must_record_start(self.effect)

    @property
    def has_failed(self) -> bool:
        """Whether the result of the call is an error."""
        results = () if self.result is None else decode_parts(self.result)
        return any(isinstance(part, ToolResultPart) and part.is_error for part in results)

    @property
    def took(self) -> Micros | None:
        """How long the call ran; None until it has ended."""
        begun = self.called_at if self.started_at is None else self.started_at
        return None if self.ended_at is None else self.ended_at - begun


def list_calls(tx: ReadTx, turn_id: int, *, after: int) -> list[ShownCall]:
    """Return what a turn calls after a number among its calls, in the order they were made."""
    return tx.all(ShownCall, "terminal.list_calls", turn_id=turn_id, after=after)


def find_sender(tx: ReadTx, *, platform: str, account: str) -> AccountHolder | None:
    """Return who sends through an account now, or None."""
    return tx.one(AccountHolder, "terminal.find_sender", platform=platform, account=account)


def find_process(tx: ReadTx, holder: str) -> TerminalProcess | None:
    """Return where a terminal runs, or ran; None for a gateway and for one that ended in order."""
    return tx.one(TerminalProcess, "terminal.find_process", holder=holder)
