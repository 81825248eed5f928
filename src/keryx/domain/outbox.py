"""Deliveries: their states, what an attempt's outcome makes of them, and when to try again.

A delivery whose outcome is unknown is sent again only under the platform's idempotency key, or marked as possibly
repeated. The platform's own retry time goes before our table.
"""

from typing import Final, Literal, TypeAlias, get_args

from keryx.clock import DAY, HOUR, MINUTE, SECOND, Micros
from keryx.values import dataclass

DeliveryState = Literal["ready", "sending", "sent", "rejected", "unknown", "dead"]
DeliveryKind = Literal["reply", "notice", "question", "scheduled", "pairing", "copy"]

DELIVERY_STATES: Final[tuple[DeliveryState, ...]] = get_args(DeliveryState)
DELIVERY_KINDS: Final[tuple[DeliveryKind, ...]] = get_args(DeliveryKind)

ATTEMPTS_MAX: Final = 10
"""With the table below, about half an hour of trying."""

MAYBE_REPEATED_MARK: Final = "(possibly repeated)"

_FIRST_WAIT: Final[Micros] = 2 * SECOND
_LONGEST_WAIT: Final[Micros] = 15 * MINUTE
_FIRST_PROBE: Final[Micros] = HOUR
_LONGEST_PROBE: Final[Micros] = 7 * DAY

_NEXT_STATES: Final[dict[DeliveryState, frozenset[DeliveryState]]] = {
    # Straight to dead when the address is known to be.
    "ready": frozenset({"sending", "dead"}),
    "sending": frozenset({"ready", "sent", "rejected", "unknown", "dead"}),
    # A late receipt may settle an unknown one; a person may ask for another attempt at what failed.
    "unknown": frozenset({"ready", "sent"}),
    "rejected": frozenset({"ready"}),
    "dead": frozenset({"ready"}),
    "sent": frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The platform has it, under this id if it told one."""

    message_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The platform, or the way to it, did not take it: certainly nothing was shown.

    ``permanent`` means that the same message will never be taken, ``dead_address`` that nothing will be there.
    """

    reason: str
    retry_after: Micros | None = None
    permanent: bool = False
    dead_address: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """It left, and no receipt came."""


Outcome: TypeAlias = Sent | Rejected | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class NextDelivery:
    """What a delivery becomes after an attempt; ``due_at`` is set when it is to be tried again."""

    state: DeliveryState
    due_at: Micros | None = None
    message_id: str | None = None
    maybe_repeated: bool = False
    reason: str | None = None
    address_dead: bool = False


def delivery_may_become(state: DeliveryState, new: DeliveryState) -> bool:
    """Say whether a delivery in ``state`` may go to ``new``."""
    return new in _NEXT_STATES[state]


def retry_at(attempt: int, *, now: Micros, retry_after: Micros | None = None, jitter: float = 0.0) -> Micros:
    """Return when to try again after attempt number ``attempt`` (from 1), by doubling waits.

    ``jitter`` from 0 to 1 lengthens the wait by up to a quarter, so that many deliveries do not return at once.
    """
    if retry_after is not None:
        return now + max(0, retry_after)
    return now + _doubled(_FIRST_WAIT, attempt - 1, longest=_LONGEST_WAIT, jitter=jitter)


def probe_at(probes: int, *, now: Micros) -> Micros:
    """Return when a dead address, probed ``probes`` times in vain, is probed again."""
    return now + _doubled(_FIRST_PROBE, probes, longest=_LONGEST_PROBE)


def after_outcome(
    outcome: Outcome, *, attempt: int, now: Micros, deduplicates: bool, jitter: float = 0.0
) -> NextDelivery:
    """Return what attempt number ``attempt`` (from 1) makes of a delivery in state ``sending``.

    ``deduplicates`` says whether the platform shows a message sent twice under one key only once.
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
    # The exponent is bounded before the power is taken, since probes go on for years.
    wait = min(first << min(max(times, 0), 32), longest)
    return wait + int(wait * jitter / 4)
