"""A stored question to a person before a tool of effect ``ask`` runs.

The first answer wins, and an answer after the expiry changes nothing: a decided approval never changes again.
"""

from dataclasses import replace
from typing import Literal, NewType, get_args

from keryx.clock import DAY, Micros
from keryx.core.approvals.rules.approval_rule import ApprovalRule, describe_coverage
from keryx.core.people.rules.person import PersonId
from keryx.core.values.time_zone import datetime_of, zone_of
from keryx.errors import InvalidValue
from keryx.values import dataclass

ApprovalId = NewType("ApprovalId", int)
Verdict = Literal["approved", "denied"]
ApprovalState = Literal["pending", "approved", "denied", "expired"]
Scope = Literal["once", "session", "always"]

APPROVAL_LIFETIME: Micros = DAY
ASK_USER = "ask_user"
"""The tool that asks its own question: the person's next message is the answer, and any answer approves the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalQuestion:
    """A question before a tool runs; ``covers`` is what a standing approval would cover, None if none is possible."""

    text: str
    tool: str
    covers: str | None = None
    zone: str = "UTC"

    def told(self, number: int, *, expires_at: Micros) -> str:
        """Return the question with the possible answers and the time of its expiry."""
        lines = [self.text, "/approve: yes, once"]
        if self.covers is not None:
            what = describe_coverage(self.tool, self.covers)
            lines.append(f"/approve session: yes, from now on in this conversation ({what})")
            lines.append(f"/approve always: yes, from now on everywhere ({what})")
        by = format_time(expires_at, zone=self.zone)
        lines += ["/deny: no", f"This is question {number}. Without an answer by {by} it is not done."]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question, the person who is asked, and the decision."""

    id: ApprovalId
    person_id: PersonId
    question: str
    asked_at: Micros
    expires_at: Micros
    state: ApprovalState = "pending"
    decided_at: Micros | None = None
    decided_by: PersonId | None = None

    def __post_init__(self) -> None:
        if self.state not in get_args(ApprovalState):
            raise InvalidValue(
                f"approval state {self.state!r}: use one of {', '.join(get_args(ApprovalState))}"
            )
        if self.expires_at <= self.asked_at:
            raise InvalidValue("approval expires before it is asked: give it time to be answered")
        if (self.state == "pending") != (self.decided_at is None):
            raise InvalidValue(
                f"approval is {self.state}: give the time of decision exactly if it is not pending"
            )
        if (self.state in get_args(Verdict)) != (self.decided_by is not None):
            raise InvalidValue(f"approval is {self.state}: name who decided exactly if a person did")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The answer counts; store ``approval``. ``rule`` is the standing approval that the answer made, if any."""

    approval: Approval
    rule: ApprovalRule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyDecided:
    """An earlier answer counts; ``approval`` says whose and which."""

    approval: Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLate:
    """The question has expired; ``approval`` is the expired one, to be stored if it was still pending."""

    approval: Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAsked:
    """Another person was asked; nothing changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyOnce:
    """No standing approval is possible, because its reach would be unclear; the question stays pending."""


def answer(
    approval: Approval, verdict: Verdict, *, person_id: PersonId, now: Micros
) -> Decided | AlreadyDecided | TooLate | NotAsked:
    """Return the effect of a person's answer ``verdict`` on ``approval``."""
    if person_id != approval.person_id:
        return NotAsked()
    approval = expire(approval, now=now)
    if approval.state == "expired":
        return TooLate(approval=approval)
    if approval.state != "pending":
        return AlreadyDecided(approval=approval)
    return Decided(approval=replace(approval, state=verdict, decided_at=now, decided_by=person_id))


def expire(approval: Approval, *, now: Micros) -> Approval:
    """Return ``approval`` as of ``now``: expired if it was pending and ``expires_at`` has passed, else unchanged."""
    if approval.state == "pending" and now >= approval.expires_at:
        return replace(approval, state="expired", decided_at=approval.expires_at)
    return approval


def format_time(at: Micros, *, zone: str) -> str:
    """Return an instant as text for people."""
    return f"{datetime_of(at, zone_of(zone)):%Y-%m-%d %H:%M %Z}"
