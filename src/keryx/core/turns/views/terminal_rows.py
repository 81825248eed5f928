"""The rows that a terminal shows: deliveries to its address, messages to its session, and calls of its turns."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.message import Part, ToolCallPart, ToolResultPart, decode_parts, text_of
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.delivery import DeliveryKind, DeliveryState
from keryx.core.turns.rules.turn import must_record_start
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect, StepState
from keryx.store.codec import source_from_json


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
    def text_before(self) -> str:
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
        """How long the call ran; None until it ends."""
        begun = self.called_at if self.started_at is None else self.started_at
        return None if self.ended_at is None else self.ended_at - begun
