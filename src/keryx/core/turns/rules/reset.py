"""Decide when a session is reset.

Pure: takes the session's last activity, the policy and the current time, and returns a decision. A reset is due
exactly from ``expires_at`` on, so the watcher that flushes before a reset and the lookup that resets always agree.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime, time, timedelta
from types import MappingProxyType
from typing import Literal, get_args

from keryx.clock import MINUTE, Micros
from keryx.core.conversations.rules.session_key import SCHEDULE
from keryx.core.conversations.rules.source import ChatType, Source, check_chat_type, check_platform
from keryx.core.values.time_zone import datetime_of, instant_of, zone_of
from keryx.errors import InvalidValue
from keryx.values import dataclass

ResetMode = Literal["none", "idle", "daily", "both"]
ResetReason = Literal["idle", "daily"]
Place = tuple[str | None, ChatType | None]
"""A platform, a chat type, or a chat type of a platform."""

IDLE_MINUTES_MAX = 10 * 366 * 24 * 60
FLUSH_LEAD_MINUTES = 10
FLUSH_LATE_MINUTES = 24 * 60
"""How long after its expiry a session is still flushed. Without this bound all older sessions would come at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPolicy:
    """When a session expires: after an idle time, at an hour of the day in an IANA zone, both, or never."""

    mode: ResetMode = "none"
    idle_minutes: int = 1440
    at_hour: int = 4
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.mode not in get_args(ResetMode):
            raise InvalidValue(f"reset mode {self.mode!r}: use one of {', '.join(get_args(ResetMode))}")
        if not _is_int(self.idle_minutes) or not 1 <= self.idle_minutes <= IDLE_MINUTES_MAX:
            raise InvalidValue(
                f"idle_minutes {self.idle_minutes!r}: give a whole number from 1 to {IDLE_MINUTES_MAX}"
            )
        if not _is_int(self.at_hour) or not 0 <= self.at_hour <= 23:
            raise InvalidValue(f"at_hour {self.at_hour!r}: give an hour from 0 to 23")
        zone_of(self.zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPolicies:
    """The owner's policies; the most specific one applies."""

    default: ResetPolicy = field(default_factory=ResetPolicy)
    by_place: Mapping[Place, ResetPolicy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for platform, chat_type in self.by_place:
            if platform is not None:
                check_platform(platform)
            if chat_type is not None:
                check_chat_type(chat_type)
        # Store a private copy: the checked value cannot change later.
        object.__setattr__(self, "by_place", MappingProxyType(dict(self.by_place)))

    @property
    def all(self) -> tuple[ResetPolicy, ...]:
        """All policies, each once."""
        return tuple(dict.fromkeys([self.default, *self.by_place.values()]))

    def resolve(self, platform: str, chat_type: ChatType) -> ResetPolicy:
        """Return the policy for a chat: platform and chat type, else platform, else chat type, else the default."""
        places: tuple[Place, ...] = ((platform, chat_type), (platform, None), (None, chat_type))
        return next((self.by_place[place] for place in places if place in self.by_place), self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushWindow:
    """The sessions of a policy to flush now: last active later than ``after``, up to ``until``."""

    after: Micros
    until: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetNotice:
    """The texts about a reset, for the user and for the agent; each is given once."""

    user: str
    agent: str


def reset_due(policy: ResetPolicy, *, last_active_at: Micros, now: Micros) -> ResetReason | None:
    """Return the reason why the session must be reset now, or None if the session continues.

    In mode ``both`` the reason is the rule that was due first.
    """
    deadline = _deadline(policy, last_active_at)
    return None if deadline is None or now < deadline[0] else deadline[1]


def expires_at(policy: ResetPolicy, *, last_active_at: Micros) -> Micros | None:
    """Return the first instant at which a reset is due without further activity, or None for never."""
    deadline = _deadline(policy, last_active_at)
    return None if deadline is None else deadline[0]


def flush_due(policy: ResetPolicy, *, last_active_at: Micros, now: Micros) -> bool:
    """Return whether the agent should save notes from the session now (a flush).

    A flush is due ten minutes before the session expires, but not before half of the time from the last activity has
    passed: otherwise a short idle time would cost a flush for every message.
    """
    expiry = expires_at(policy, last_active_at=last_active_at)
    if expiry is None:
        return False
    return now >= max(expiry - FLUSH_LEAD_MINUTES * MINUTE, (last_active_at + expiry) // 2)


def any_flush_due(
    policies: ResetPolicies, surfaces: Iterable[Source], *, last_active_at: Micros, now: Micros
) -> bool:
    """Return whether to flush a session that these surfaces show, if it has messages to flush.

    The surface whose policy expires first decides, except the surface of a schedule: no message arrives there, so none
    resets the session. Do not flush a session that expired too long ago.
    """
    at = [each for each in surfaces if each.platform != SCHEDULE]
    return any(
        flush_due(policy, last_active_at=last_active_at, now=now)
        and now - FLUSH_LATE_MINUTES * MINUTE < (expires_at(policy, last_active_at=last_active_at) or 0)
        for policy in {policies.resolve(each.platform, each.chat_type) for each in at}
    )


def flush_window(policy: ResetPolicy, *, now: Micros) -> FlushWindow | None:
    """Return the range of last activities for which ``flush_due`` is true now, or None if the policy never expires.

    They are one range, because a later activity expires later. So the query for sessions to flush reads one range of
    an index.
    """
    late = now - FLUSH_LATE_MINUTES * MINUTE
    expired: list[Micros] = []
    due: list[Micros] = []
    if policy.mode in ("daily", "both"):
        boundary = _boundary_after(policy, now)
        expired.append(_boundary_until(policy, late) - 1)
        due.append(_boundary_until(policy, now) - 1)
        if now >= boundary - FLUSH_LEAD_MINUTES * MINUTE:
            due.append(2 * now + 1 - boundary)
    if policy.mode in ("idle", "both"):
        quiet = policy.idle_minutes * MINUTE
        expired.append(late - quiet - 1)
        due.append(min(now - quiet - 1 + FLUSH_LEAD_MINUTES * MINUTE, (2 * now - quiet) // 2))
    return FlushWindow(after=max(expired), until=max(due)) if due else None


def reset_notice(policy: ResetPolicy, reason: ResetReason) -> ResetNotice:
    """Return the texts for the user and the agent about a reset under ``policy``."""
    if reason == "daily":
        hour = f"{policy.at_hour:02d}:00"
        since, why = f"since {hour}", f"daily reset at {hour} {policy.zone}"
    else:
        quiet = _duration(policy.idle_minutes)
        since, why = f"after {quiet} without a message", f"idle for more than {quiet}"
    return ResetNotice(
        user=f"fresh conversation {since}; /resume brings the last one back",
        agent=f"This conversation was just reset ({why}); earlier messages are in the previous session.",
    )


def _deadline(policy: ResetPolicy, last_active_at: Micros) -> tuple[Micros, ResetReason] | None:
    deadlines: list[tuple[Micros, ResetReason]] = []
    if policy.mode in ("daily", "both"):
        deadlines.append((_boundary_after(policy, last_active_at), "daily"))
    if policy.mode in ("idle", "both"):
        # A reset is due strictly after the idle time; a microsecond is the smallest step.
        deadlines.append((last_active_at + policy.idle_minutes * MINUTE + 1, "idle"))
    return min(deadlines, default=None)


def _boundary_after(policy: ResetPolicy, moment: Micros) -> Micros:
    """Return the first daily boundary strictly after ``moment``.

    "Last activity is strictly before the latest boundary" and "the first boundary after last activity has passed" are
    equivalent; the second form also gives the expiry.
    """
    # Look two days ahead, because the boundary of a day that a zone skips is the start of the next day. Yesterday's
    # boundary has always passed when today begins.
    return next(at for at in _boundaries(policy, moment, range(3)) if at > moment)


def _boundary_until(policy: ResetPolicy, moment: Micros) -> Micros:
    """Return the last daily boundary at or before ``moment``."""
    # Look two days back, for the same reason as two days ahead.
    return next(at for at in _boundaries(policy, moment, range(0, -3, -1)) if at <= moment)


def _boundaries(policy: ResetPolicy, moment: Micros, days: Iterable[int]) -> list[Micros]:
    """Return the daily boundaries of these days, counted from the day of ``moment``."""
    zone, hour = zone_of(policy.zone), time(policy.at_hour)
    today = datetime_of(moment, zone).date()
    return [instant_of(datetime.combine(today + timedelta(days=day), hour), zone) for day in days]


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _duration(minutes: int) -> str:
    for size, unit in ((1440, "day"), (60, "hour")):
        if minutes % size == 0 and minutes > size:
            return f"{minutes // size} {unit}s"
    return "1 minute" if minutes == 1 else f"{minutes} minutes"
