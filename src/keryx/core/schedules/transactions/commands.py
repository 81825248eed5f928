"""``/schedule``: show and change the scheduled turns of a person."""

from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    decline,
    number_of,
    say,
    shortly,
    span,
)
from keryx.core.deliveries.rules.route import ORIGIN, Address
from keryx.core.schedules.rules.plan import NAME_CHARACTERS_MAX, SchedulePlan
from keryx.core.schedules.tables import Schedule, list_schedules
from keryx.core.schedules.transactions.manage_schedule import (
    HasEnded,
    NameTaken,
    create_schedule,
    end_schedule,
)
from keryx.core.values.time_zone import datetime_of, zone_of
from keryx.store.database import Tx

ADD_USAGE = "Write it like /schedule add every 2h | look at the mail"


def schedule(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show or change scheduled turns."""
    word, _, rest = arguments.partition(" ")
    match word.lower():
        case "" | "list":
            return _list_schedules(tx, context)
        case "add":
            return _add_schedule(tx, context, rest)
        case "remove":
            return _remove_schedule(tx, context, rest.strip())
        case _:
            return decline(context, f"/schedule takes list, add or remove. {ADD_USAGE}")


def _shown_schedules(tx: Tx, context: CommandContext) -> list[Schedule]:
    """Return the person's schedules; in a group, only those made there."""
    listed = list_schedules(tx, owner_id=context.person.id)
    if context.source.chat_type == "dm":
        return listed
    here = Address.of(context.source)
    return [item for item in listed if item.origin is not None and Address.of(item.origin) == here]


def _list_schedules(tx: Tx, context: CommandContext) -> CommandOutcome:
    listed = _shown_schedules(tx, context)
    if not listed:
        return say(context, f"Nothing is scheduled. {ADD_USAGE}")
    lines = []
    for item in listed:
        due = item.state if item.due_at is None else f"next in {span(max(0, item.due_at - tx.now))}"
        lines.append(f"{item.id}. {shortly(item.name)}: {item.rule}, {due}")
    return say(context, "\n".join([*lines, "/schedule remove <number> ends one."]))


def _add_schedule(tx: Tx, context: CommandContext, text: str) -> CommandOutcome:
    rule, bar, task = (part.strip() for part in text.partition("|"))
    if not (rule and bar and task):
        return decline(context, f"Give the time and the task, with | between them. {ADD_USAGE}")
    policy = context.settings.reset.resolve(context.source.platform, context.source.chat_type)
    plan = SchedulePlan(
        name=shortly(task)[:NAME_CHARACTERS_MAX],
        rule=rule,
        zone=policy.zone,
        parts=(TextPart(text=task),),
        route=ORIGIN,
    )
    outcome = create_schedule(tx, plan, person_id=context.person.id, origin=context.source)
    if isinstance(outcome, NameTaken):
        return decline(context, f"There is a schedule {outcome.name!r} already; word the task differently.")
    made = outcome.schedule
    assert made.due_at is not None, "an active schedule is due"
    when = datetime_of(made.due_at, zone_of(policy.zone))
    return say(context, f"Scheduled as number {made.id}; first at {when:%Y-%m-%d %H:%M %Z}.")


def _remove_schedule(tx: Tx, context: CommandContext, text: str) -> CommandOutcome:
    number = number_of(text)
    if number is None:
        return decline(context, "Give the number: /schedule remove <number>. /schedule lists the numbers.")
    outcome = end_schedule(tx, number, person_id=context.person.id)
    end = "had ended already" if isinstance(outcome, HasEnded) else "will not run again"
    return say(context, f"{shortly(outcome.schedule.name)!r} {end}.")
