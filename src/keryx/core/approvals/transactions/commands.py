"""``/approve`` and ``/deny``: what people answer when the agent asks, and what they lastingly allow."""

from typing import Final, get_args

from keryx.core.approvals.rules.approval import (
    ApprovalId,
    Decided,
    NotAsked,
    OnlyOnce,
    Scope,
    TooLate,
    Verdict,
)
from keryx.core.approvals.rules.approval_rule import ApprovalRule, describe_coverage
from keryx.core.approvals.transactions.decide_approval import decide_approval, tell_decided
from keryx.core.approvals.transactions.manage_approval_rules import forget_rule
from keryx.core.approvals.views.open_questions import PendingQuestion, list_questions
from keryx.core.approvals.views.rule_list import list_rules
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
ONLY_ONCE: Final = (
    "That can be allowed only for once, because no pattern tells plainly what a lasting yes would cover. "
    "Answer /approve or /deny."
)
_SCOPES: Final[dict[str, Scope]] = {scope: scope for scope in get_args(Scope)}


def approve(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Allow what the agent asked for, this time or lastingly; or show and take back what is lastingly allowed."""
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
    """Refuse what the agent asked for."""
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
    if isinstance(outcome, Decided):
        tell_decided(tx, number, verdict, answered_at=Address.of(context.source), ids=context.ids)
    match outcome:
        case Decided(rule=None):
            return say(context, "Allowed." if verdict == "approved" else "Refused.")
        case Decided(rule=ApprovalRule() as rule):
            return say(context, _lastingly(rule, context))
        case NotAsked():
            return decline(context, "That question was not put to you.")
        case OnlyOnce():
            return decline(context, ONLY_ONCE)
        case TooLate():
            return decline(context, "That question has expired; the agent was told so.")
        case already:
            return decline(context, f"That was {already.approval.state} already.")


def _lastingly(rule: ApprovalRule, context: CommandContext) -> str:
    where = "everywhere" if rule.session_id is None else "in that conversation"
    if rule.session_id == context.session_id:
        where = "in this conversation"
    # The question may have been asked where nobody else read it.
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
        return say(context, "You allow nothing lastingly: I ask every time.")
    lines = []
    for rule in listed:
        where = "always"
        if rule.session_id is not None:
            where = f"in {shortly(rule.session_title or rule.session_id)!r}"
        what = describe_coverage(rule.tool, rule.pattern)
        lines.append(f"{rule.id}. {what}, {where}; allowed {ago(rule.since_at, now=tx.now)}")
    return say(context, "\n".join([*lines, "/approve forget <number> takes one back."]))
