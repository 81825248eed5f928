"""Use what a person lastingly allows, and let them take it back.

A rule is used only for the person who gave it. A call that one covers gets an approval that is decided from the start
and names the rule, so that it can always be told why nobody was asked.
"""

from collections.abc import Sequence

from keryx.core.approvals.rules.approval import APPROVAL_LIFETIME
from keryx.core.approvals.rules.approval_rule import CallToApprove
from keryx.core.approvals.tables import approval_rules, approvals
from keryx.core.conversations.tables import feed
from keryx.core.conversations.transactions.session_guard import require_turn_lease
from keryx.core.people.rules.person import PersonId
from keryx.core.turns.rules.lease import TurnLease
from keryx.errors import NotFound
from keryx.store.database import Tx


def allow_by_rules(tx: Tx, held: TurnLease, *, wishes: Sequence[CallToApprove]) -> frozenset[str]:
    """Allow the calls that the turn's person lastingly allows, and return their ids; the others must be asked about."""
    turn = require_turn_lease(tx, held)
    if turn.person_id is None:
        return frozenset()
    allowed = set()
    for wish in wishes:
        known = approval_rules.list_for_call(
            tx, person_id=turn.person_id, session_id=turn.session_id, tool=wish.tool
        )
        rule = next((rule for rule in known if rule.covers(wish)), None)
        if rule is None:
            continue
        approval_id = approvals.add_allowed(
            tx,
            wish,
            rule_id=rule.id,
            expires_at=tx.now + APPROVAL_LIFETIME,
            session_id=turn.session_id,
            turn_id=held.turn_id,
            person_id=turn.person_id,
        )
        feed.add_event(tx, turn.session_id, "approval", approval_id)
        allowed.add(wish.call_id)
    return frozenset(allowed)


def forget_rule(tx: Tx, rule_id: int, *, person_id: PersonId) -> None:
    """Take a lasting yes back: the person is asked again; raises ``NotFound`` where they have none of that number."""
    if not approval_rules.drop_rule(tx, rule_id, person_id=person_id):
        raise NotFound(f"You have no rule {rule_id}. /approve rules lists yours, in a direct message.")
    feed.add_personal_event(tx, person_id, "rule", rule_id)
