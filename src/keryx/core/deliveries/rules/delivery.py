"""Deliveries: their states, the result of an attempt, and the time of the next attempt.

A delivery with an unknown outcome is sent again only under the platform's idempotency key, or marked as possibly
repeated. The platform's own retry time overrides our back-off.
"""

from typing import Final, Literal, TypeAlias

from keryx.clock import DAY, HOUR, MINUTE, SECOND, Micros
from keryx.values import dataclass

DeliveryState = Literal["ready", "sending", "sent", "rejected", "unknown", "dead"]
DeliveryKind = Literal["reply", "notice", "question", "scheduled", "pairing", "copy"]


ATTEMPTS_MAX: Final = 10
"""With the back-off below, about half an hour of attempts."""

MAYBE_REPEATED_MARK: Final = "(possibly repeated)"

_FIRST_WAIT: Final[Micros] = 2 * SECOND
_LONGEST_WAIT: Final[Micros] = 15 * MINUTE
_FIRST_PROBE: Final[Micros] = HOUR
_LONGEST_PROBE: Final[Micros] = 7 * DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The platform accepted the message, with this id if it reported one."""

    message_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The platform, or the connection to it, refused the message: it was certainly not shown.

    ``permanent`` means that this message will never be accepted, ``dead_address`` that the address accepts none.
    """

    reason: str
    retry_after: Micros | None = None
    permanent: bool = False
    dead_address: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """The message was sent, but no receipt came."""


Outcome: TypeAlias = Sent | Rejected | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class NextDelivery:
    """The state of a delivery after an attempt; ``due_at`` is set if there is another attempt."""

    state: DeliveryState
    due_at: Micros | None = None
    message_id: str | None = None
    maybe_repeated: bool = False
    reason: str | None = None
    address_dead: bool = False


def retry_at(attempt: int, *, now: Micros, retry_after: Micros | None = None, jitter: float = 0.0) -> Micros:
    """Return when to try again after attempt number ``attempt`` (from 1), with exponential back-off.

    ``jitter`` from 0 to 1 lengthens the wait by up to a quarter, so that many deliveries do not retry at once.
    """
    if retry_after is not None:
        return now + max(0, retry_after)
    return now + _doubled(_FIRST_WAIT, attempt - 1, longest=_LONGEST_WAIT, jitter=jitter)


def probe_at(probes: int, *, now: Micros) -> Micros:
    """Return when to probe a dead address again after ``probes`` failed probes."""
    return now + _doubled(_FIRST_PROBE, probes, longest=_LONGEST_PROBE)


def after_outcome(
    outcome: Outcome, *, attempt: int, now: Micros, deduplicates: bool, jitter: float = 0.0
) -> NextDelivery:
    """Return the state of a delivery after attempt number ``attempt`` (from 1); it was in state ``sending``.

    ``deduplicates`` says whether the platform shows a message once if it is sent twice under one key.
    """
    match outcome:
        case Sent():
            return NextDelivery(state="sent", message_id=outcome.message_id)
        case Rejected():
            return _after_rejection(outcome, attempt=attempt, now=now, jitter=jitter)
        case _:
            if attempt >= ATTEMPTS_MAX:
                return NextDelivery(state="unknown", reason="no receipt came, at the last attempt either")
            return NextDelivery(
                state="ready",
                due_at=retry_at(attempt, now=now, jitter=jitter),
                maybe_repeated=not deduplicates,
                reason="no receipt came",
            )


def _after_rejection(outcome: Rejected, *, attempt: int, now: Micros, jitter: float) -> NextDelivery:
    if outcome.dead_address:
        return NextDelivery(state="dead", reason=outcome.reason, address_dead=True)
    if outcome.permanent:
        return NextDelivery(state="rejected", reason=outcome.reason)
    if attempt >= ATTEMPTS_MAX:
        return NextDelivery(state="dead", reason=f"given up after {attempt} attempts: {outcome.reason}")
    due_at = retry_at(attempt, now=now, retry_after=outcome.retry_after, jitter=jitter)
    return NextDelivery(state="ready", due_at=due_at, reason=outcome.reason)


def _doubled(first: Micros, times: int, *, longest: Micros, jitter: float = 0.0) -> Micros:
    # Bound the exponent before shifting, since probes continue for years.
    wait = min(first << min(max(times, 0), 32), longest)
    return wait + int(wait * jitter / 4)
