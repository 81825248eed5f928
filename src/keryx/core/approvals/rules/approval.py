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

    def with_answers(self, number: int, *, expires_at: Micros) -> str:
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
    """A question about a tool call, the person who is asked, and the answer: a row of the table."""

    id: ApprovalId
    session_id: str
    turn_id: int
    call_id: str
    person_id: PersonId
    question: str
    asked_at: Micros
    expires_at: Micros
    state: ApprovalState = "pending"
    answered_at: Micros | None = None
    answered_by: PersonId | None = None
    note: str | None = None
    """The words of the answer, if the agent asked in its own words."""
    covers: str | None = None
    """What a standing approval would cover; None if none is possible."""
    rule_id: int | None = None
    """The standing approval that allowed the call without a question."""

    def __post_init__(self) -> None:
        if self.state not in get_args(ApprovalState):
            raise InvalidValue(
                f"approval state {self.state!r}: use one of {', '.join(get_args(ApprovalState))}"
            )
        if self.expires_at <= self.asked_at:
            raise InvalidValue("approval expires before it is asked: give it time to be answered")
        if (self.state == "pending") != (self.answered_at is None):
            raise InvalidValue(f"approval is {self.state}: give the time of the answer unless it is pending")
        if (self.state in get_args(Verdict)) != (self.answered_by is not None):
            raise InvalidValue(f"approval is {self.state}: name who answered exactly if a person did")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer counts; store ``approval``. ``rule`` is the standing approval that the answer made, if any."""

    approval: Approval
    rule: ApprovalRule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecided:
    """An earlier answer counts; ``approval`` says whose and which."""

    approval: Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalExpired:
    """The question has expired; ``approval`` is the expired one, to be stored if it was still pending."""

    approval: Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class NotThePersonAsked:
    """Another person was asked; nothing changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoStandingApproval:
    """No standing approval is possible, because its reach would be unclear; the question stays pending."""


def answer(
    approval: Approval, verdict: Verdict, *, person_id: PersonId, now: Micros
) -> Answered | ApprovalDecided | ApprovalExpired | NotThePersonAsked:
    """Return the effect of a person's answer ``verdict`` on ``approval``."""
    if person_id != approval.person_id:
        return NotThePersonAsked()
    approval = expire(approval, now=now)
    if approval.state == "expired":
        return ApprovalExpired(approval=approval)
    if approval.state != "pending":
        return ApprovalDecided(approval=approval)
    return Answered(approval=replace(approval, state=verdict, answered_at=now, answered_by=person_id))


def expire(approval: Approval, *, now: Micros) -> Approval:
    """Return ``approval`` as of ``now``: expired if it was pending and ``expires_at`` has passed, else unchanged."""
    if approval.state == "pending" and now >= approval.expires_at:
        return replace(approval, state="expired", answered_at=approval.expires_at)
    return approval


def format_time(at: Micros, *, zone: str) -> str:
    """Return an instant as text for people."""
    return f"{datetime_of(at, zone_of(zone)):%Y-%m-%d %H:%M %Z}"
