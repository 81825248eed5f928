"""``/approve`` and ``/deny``: answer the agent's questions, and list or remove standing approvals."""

from typing import Final, get_args

from keryx.core.approvals.rules.approval import (
    Answered,
    ApprovalExpired,
    ApprovalId,
    NoStandingApproval,
    NotThePersonAsked,
    Scope,
    Verdict,
)
from keryx.core.approvals.rules.approval_rule import ApprovalRule, describe_coverage
from keryx.core.approvals.transactions.decide_approval import announce_decision, decide_approval
from keryx.core.approvals.transactions.manage_approval_rules import forget_rule
from keryx.core.approvals.views import PendingQuestion, list_questions, list_rules
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    ago,
    decline,
    number_of,
    say,
    shortly,
)
from keryx.core.deliveries.rules.route import Address
from keryx.store.database import Tx

RULES_MAX: Final = 50
NO_STANDING_APPROVAL: Final = (
    "This can be approved only once, because no pattern says clearly what a standing approval would cover. "
    "Answer /approve or /deny."
)
_SCOPES: Final[dict[str, Scope]] = {scope: scope for scope in get_args(Scope)}


def approve(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Approve a call, once or with a standing approval; or list or remove standing approvals."""
    match arguments.lower().split():
        case ["rules"]:
            return _list_rules(tx, context)
        case ["forget", number] if (rule_id := number_of(number)) is not None:
            forget_rule(tx, rule_id, person_id=context.person.id)
            return say(context, f"Rule {rule_id} is forgotten: I ask you again.")
        case ["forget", *_]:
            return decline(context, "Say which: /approve forget <number>. /approve rules lists them.")
        case [*first, word] if word in _SCOPES:
            return _decide(tx, context, " ".join(first), "approved", scope=_SCOPES[word])
        case [word, number] if word in _SCOPES:
            return _decide(tx, context, number, "approved", scope=_SCOPES[word])
        case _:
            return _decide(tx, context, arguments, "approved")


def deny(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Refuse a call."""
    return _decide(tx, context, arguments, "denied")


def _decide(
    tx: Tx, context: CommandContext, arguments: str, verdict: Verdict, *, scope: Scope = "once"
) -> CommandOutcome:
    number = number_of(arguments)
    if number is None:
        waiting = list_questions(tx, context.session_id, person_id=context.person.id)
        if len(waiting) != 1 or arguments:
            return decline(context, _questions(waiting))
        number = waiting[0].id
    outcome = decide_approval(tx, ApprovalId(number), verdict, person_id=context.person.id, scope=scope)
    if isinstance(outcome, Answered):
        announce_decision(tx, number, verdict, answered_at=Address.of(context.source), ids=context.ids)
    match outcome:
        case Answered(rule=None):
            return say(context, "Allowed." if verdict == "approved" else "Refused.")
        case Answered(rule=ApprovalRule() as rule):
            return say(context, _standing(rule, context))
        case NotThePersonAsked():
            return decline(context, "That question was not put to you.")
        case NoStandingApproval():
            return decline(context, NO_STANDING_APPROVAL)
        case ApprovalExpired():
            return decline(context, "That question has expired; the agent was told so.")
        case decided:
            return decline(context, f"That was {decided.approval.state} already.")


def _standing(rule: ApprovalRule, context: CommandContext) -> str:
    where = "everywhere" if rule.session_id is None else "in that conversation"
    if rule.session_id == context.session_id:
        where = "in this conversation"
    # The question may have been asked in a chat that the readers of this one do not see.
    is_private = context.source.chat_type == "dm"
    what = describe_coverage(rule.tool, rule.pattern) if is_private else "what the question said"
    return f"Allowed, and from now on {where}: {what}. /approve forget {rule.id} takes that back."


def _questions(waiting: list[PendingQuestion]) -> str:
    if not waiting:
        return "Nothing waits for your answer here."
    lines = [f"{question.id}. {shortly(question.text)}" for question in waiting]
    return "\n".join([*lines, "Give the number of one: /approve <number> or /deny <number>."])


def _list_rules(tx: Tx, context: CommandContext) -> CommandOutcome:
    if context.source.chat_type != "dm":
        return say(context, "Others read this chat: use /approve rules in a direct message.")
    listed = list_rules(tx, context.person.id, limit=RULES_MAX)
    if not listed:
        return say(context, "You have no standing approvals: I ask every time.")
    lines = []
    for rule in listed:
        where = "always"
        if rule.session_id is not None:
            where = f"in {shortly(rule.session_title or rule.session_id)!r}"
        what = describe_coverage(rule.tool, rule.pattern)
        lines.append(f"{rule.id}. {what}, {where}; allowed {ago(rule.since_at, now=tx.now)}")
    return say(context, "\n".join([*lines, "/approve forget <number> takes one back."]))
