"""Apply the standing approvals of a person, and let the person take them back.

A standing approval is used only for the person who gave it. A call that it covers gets an approval that is decided from
the start and names the rule, so that the reason for not asking is always known.
"""

from collections.abc import Sequence

from keryx.core.approvals import tables as approvals
from keryx.core.approvals.rules.approval import APPROVAL_LIFETIME
from keryx.core.approvals.rules.approval_rule import CallToApprove
from keryx.core.conversations.tables import feed
from keryx.core.conversations.transactions.session_guard import require_turn_lease
from keryx.core.people.rules.person import PersonId
from keryx.core.turns.rules.lease import TurnLease
from keryx.errors import NotFound
from keryx.store.database import Tx


def allow_by_rules(tx: Tx, held: TurnLease, *, calls: Sequence[CallToApprove]) -> frozenset[str]:
    """Approve the calls that the person's standing approvals cover, and return their ids."""
    turn = require_turn_lease(tx, held)
    if turn.person_id is None:
        return frozenset()
    allowed = set()
    for call in calls:
        rules = approvals.list_rules_for_call(
            tx, person_id=turn.person_id, session_id=turn.session_id, tool=call.tool
        )
        rule = next((rule for rule in rules if rule.covers(call)), None)
        if rule is None:
            continue
        approval_id = approvals.add_allowed(
            tx,
            call,
            rule_id=rule.id,
            expires_at=tx.now + APPROVAL_LIFETIME,
            session_id=turn.session_id,
            turn_id=held.turn_id,
            person_id=turn.person_id,
        )
        feed.add_event(tx, turn.session_id, "approval", approval_id)
        allowed.add(call.call_id)
    return frozenset(allowed)


def forget_rule(tx: Tx, rule_id: int, *, person_id: PersonId) -> None:
    """Drop a standing approval of the person, who is asked again; raise ``NotFound`` if there is none."""
    if not approvals.drop_rule(tx, rule_id, person_id=person_id):
        raise NotFound(f"You have no rule {rule_id}. /approve rules lists yours, in a direct message.")
    feed.add_personal_event(tx, person_id, "rule", rule_id)
