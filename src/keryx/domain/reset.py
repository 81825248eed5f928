"""When a conversation starts over.

Pure: takes the session's last activity, the policy and now; returns a decision and changes nothing. A reset is due
exactly from ``expires_at`` on, so the watcher that flushes before it and the lookup that resets can never disagree.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime, time, timedelta
from types import MappingProxyType
from typing import Final, Literal, get_args

from keryx.clock import MINUTE, Micros
from keryx.domain.source import ChatType, Source, check_chat_type, check_platform
from keryx.domain.zone import datetime_of, instant_of, zone_of
from keryx.errors import InvalidValue
from keryx.values import dataclass

ResetMode = Literal["none", "idle", "daily", "both"]
ResetReason = Literal["idle", "daily"]

IDLE_MINUTES_MAX = 10 * 366 * 24 * 60
FLUSH_LEAD_MINUTES = 10
FLUSH_LATE_MINUTES = 24 * 60
"""How long after it expired a session is still flushed, if nobody did in time; older ones would all come at once."""
NEVER_RESET: Final = frozenset({"schedule"})
"""Platforms on which nobody speaks, so that no lookup ever starts a session over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPolicy:
    """When a session expires: after a quiet time, at an hour of the day in an IANA zone, both, or never."""

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
    by_chat_type: Mapping[ChatType, ResetPolicy] = field(default_factory=dict)
    by_platform: Mapping[str, ResetPolicy] = field(default_factory=dict)
    by_platform_and_chat_type: Mapping[tuple[str, ChatType], ResetPolicy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for chat_type in self.by_chat_type:
            check_chat_type(chat_type)
        for platform in self.by_platform:
            check_platform(platform)
        for platform, chat_type in self.by_platform_and_chat_type:
            check_platform(platform)
            check_chat_type(chat_type)
        for name in ("by_chat_type", "by_platform", "by_platform_and_chat_type"):
            # A copy nobody else holds: the value cannot change after it was checked.
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def all(self) -> tuple[ResetPolicy, ...]:
        """Every policy that applies somewhere, each once."""
        chosen = (self.by_chat_type, self.by_platform, self.by_platform_and_chat_type)
        return tuple(dict.fromkeys([self.default, *(each for named in chosen for each in named.values())]))

    def resolve(self, platform: str, chat_type: ChatType) -> ResetPolicy:
        """Return the policy for a chat: platform and chat type, else platform, else chat type, else the default."""
        return (
            self.by_platform_and_chat_type.get((platform, chat_type))
            or self.by_platform.get(platform)
            or self.by_chat_type.get(chat_type)
            or self.default
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushWindow:
    """Which sessions under ``policy`` are to be flushed now: last active later than ``after``, up to ``until``."""

    policy: ResetPolicy
    after: Micros
    until: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetNotice:
    """What is said about a reset, once to each."""

    user: str
    agent: str


def counted_from(last_active_at: Micros, *, shown_since: Iterable[Micros]) -> Micros:
    """Return from when a session's quiet time counts: its last activity, or when a surface took it up after that.

    Whoever resumes what has expired means to go on with it. That is no activity, so it moves nothing else.
    """
    return max([last_active_at, *shown_since])


def reset_due(
    policy: ResetPolicy, *, last_active_at: Micros, now: Micros, pinned_by_process: bool = False
) -> ResetReason | None:
    """Return why the session must start over now, or None to go on with it.

    Under mode ``both`` the reason is the rule that came due first.
    """
    if pinned_by_process:
        return None
    deadline = _deadline(policy, last_active_at)
    return None if deadline is None or now < deadline[0] else deadline[1]


def expires_at(policy: ResetPolicy, *, last_active_at: Micros) -> Micros | None:
    """Return the first instant at which a reset is due if nothing more is said, or None for never."""
    deadline = _deadline(policy, last_active_at)
    return None if deadline is None else deadline[0]


def flush_due(
    policy: ResetPolicy,
    *,
    last_active_at: Micros,
    now: Micros,
    flushed_at: Micros | None = None,
    lead_minutes: int = FLUSH_LEAD_MINUTES,
) -> bool:
    """Say whether the agent should note now what is worth keeping.

    That is ``lead_minutes`` before the session expires, but never sooner than halfway from the last activity, so
    that a short idle time does not cost a flush for every message. ``flushed_at`` is when it last did; it is due
    again only if there was activity since.
    """
    expiry = expires_at(policy, last_active_at=last_active_at)
    if expiry is None or (flushed_at is not None and flushed_at >= last_active_at):
        return False
    return now >= max(expiry - lead_minutes * MINUTE, (last_active_at + expiry) // 2)


def flush_wanted(
    policies: ResetPolicies, surfaces: Iterable[Source], *, last_active_at: Micros, now: Micros
) -> bool:
    """Say whether a session that is shown on these surfaces is to be flushed now, if it has messages to flush.

    The first surface by whose policy it expires decides. What expired too long ago is let go.
    """
    at = [each for each in surfaces if each.platform not in NEVER_RESET]
    return any(
        flush_due(policy, last_active_at=last_active_at, now=now)
        and now - FLUSH_LATE_MINUTES * MINUTE < (expires_at(policy, last_active_at=last_active_at) or 0)
        for policy in {policies.resolve(each.platform, each.chat_type) for each in at}
    )


def flush_window(policy: ResetPolicy, *, now: Micros) -> FlushWindow | None:
    """Return the last activities for which ``flush_due`` holds now, or None where nothing ever expires.

    All of them lie together, because who spoke later expires later. So the sessions to flush are one range of an
    index, whatever else is stored.
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
    return FlushWindow(policy=policy, after=max(expired), until=max(due)) if due else None


def reset_notice(policy: ResetPolicy, reason: ResetReason) -> ResetNotice:
    """Return what the user and the agent are told about a reset under ``policy``."""
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
        # Strictly later than the idle time, and a microsecond is the least "later" there is.
        deadlines.append((last_active_at + policy.idle_minutes * MINUTE + 1, "idle"))
    return min(deadlines, default=None)


def _boundary_after(policy: ResetPolicy, moment: Micros) -> Micros:
    """Return the first daily boundary strictly later than ``moment``.

    "Last activity is strictly earlier than the latest boundary" and "the first boundary after last activity has
    come" are the same; the second gives the expiry too.
    """
    zone = zone_of(policy.zone)
    today = datetime_of(moment, zone).date()
    # Two days on, because a day a zone skipped has its boundary where the next day begins; the day before never
    # counts, because its boundary is past whenever today has begun.
    days = (today + timedelta(days=ahead) for ahead in range(3))
    boundaries = (instant_of(datetime.combine(day, time(policy.at_hour)), zone) for day in days)
    return next(at for at in boundaries if at > moment)


def _boundary_until(policy: ResetPolicy, moment: Micros) -> Micros:
    """Return the last daily boundary that is not later than ``moment``."""
    zone = zone_of(policy.zone)
    today = datetime_of(moment, zone).date()
    # Two days back, for the same reason as two days on.
    days = (today - timedelta(days=ago) for ago in range(3))
    boundaries = (instant_of(datetime.combine(day, time(policy.at_hour)), zone) for day in days)
    return next(at for at in boundaries if at <= moment)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _duration(minutes: int) -> str:
    for size, unit in ((1440, "day"), (60, "hour")):
        if minutes % size == 0 and minutes > size:
            return f"{minutes // size} {unit}s"
    return "1 minute" if minutes == 1 else f"{minutes} minutes"
