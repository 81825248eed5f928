"""Approvals: the first answer wins, questions expire, and only the asked person answers."""

from dataclasses import replace
from typing import Any

import pytest

from keryx.core.approvals.rules.approval import (
    Answered,
    Approval,
    ApprovalDecided,
    ApprovalExpired,
    ApprovalId,
    NotThePersonAsked,
    Verdict,
    answer,
    expire,
)
from keryx.core.people.rules.person import PersonId
from keryx.errors import InvalidValue

ANA, BEN = PersonId(1), PersonId(2)
ASKED = Approval(
    id=ApprovalId(1),
    session_id="s",
    turn_id=1,
    call_id="c",
    person_id=ANA,
    question="Send it?",
    asked_at=100,
    expires_at=200,
)


@pytest.mark.parametrize("verdict", ["approved", "denied"])
def test_the_first_answer_decides(verdict: Verdict) -> None:
    decided = replace(ASKED, state=verdict, answered_at=199, answered_by=ANA)
    assert answer(ASKED, verdict, person_id=ANA, now=199) == Answered(approval=decided)


def test_a_second_answer_changes_nothing_even_after_the_expiry() -> None:
    denied = replace(ASKED, state="denied", answered_at=150, answered_by=ANA)
    assert answer(denied, "approved", person_id=ANA, now=160) == ApprovalDecided(approval=denied)
    assert answer(denied, "approved", person_id=ANA, now=500) == ApprovalDecided(approval=denied)


def test_an_answer_at_the_expiry_is_too_late() -> None:
    expired = replace(ASKED, state="expired", answered_at=200)
    assert answer(ASKED, "approved", person_id=ANA, now=200) == ApprovalExpired(approval=expired)
    assert answer(expired, "approved", person_id=ANA, now=300) == ApprovalExpired(approval=expired)


def test_a_person_who_was_not_asked_cannot_answer() -> None:
    assert answer(ASKED, "approved", person_id=BEN, now=150) == NotThePersonAsked()


def test_a_question_expires_only_while_pending_and_at_its_expiry() -> None:
    assert expire(ASKED, now=199) is ASKED
    assert expire(ASKED, now=900) == replace(ASKED, state="expired", answered_at=200)


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "asked"},
        {"expires_at": 100},
        {"state": "approved"},
        {"state": "approved", "answered_at": 150},
        {"answered_at": 150},
        {"answered_by": ANA},
        {"state": "expired", "answered_at": 200, "answered_by": ANA},
    ],
)
def test_an_approval_that_contradicts_itself_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match="approval"):
        replace(ASKED, **wrong)
