"""Approval rules: what people lastingly allow, each with the approval that made it; a dropped one never holds again."""

from keryx.core.approvals.rules.approval_rule import ApprovalRule
from keryx.store.database import ReadTx, Tx


def add_rule(
    tx: Tx, *, person_id: int, session_id: str | None, tool: str, pattern: str, approval_id: int
) -> ApprovalRule:
    """Keep a lasting yes and return it; with a session it holds only there."""
    rule = tx.one(
        ApprovalRule,
        "approval_rules.add",
        person_id=person_id,
        session_id=session_id,
        tool=tool,
        pattern=pattern,
        approval_id=approval_id,
    )
    assert rule is not None
    return rule


def list_for_call(tx: ReadTx, *, person_id: int, session_id: str, tool: str) -> list[ApprovalRule]:
    """Return what a person lastingly allows a tool in a session, oldest first."""
    return tx.all(
        ApprovalRule, "approval_rules.list_for_call", person_id=person_id, session_id=session_id, tool=tool
    )


def drop_rule(tx: Tx, rule_id: int, *, person_id: int) -> bool:
    """Take a lasting yes back; False where this person has none with that number."""
    return tx.run("approval_rules.drop", rule_id=rule_id, person_id=person_id) == 1


def drop_of_session(tx: Tx, session_id: str) -> None:
    """End what was allowed for a session."""
    tx.run("approval_rules.drop_of_session", session_id=session_id)
