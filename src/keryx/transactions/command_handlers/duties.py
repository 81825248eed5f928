"""``/schedule``, ``/sethome``, ``/link``, ``/pair``: what people allow and arrange."""

from keryx.domain.access import parse_pairing_code
from keryx.domain.message import TextPart
from keryx.domain.route import ORIGIN, Address
from keryx.domain.schedule_plan import NAME_CHARACTERS_MAX, SchedulePlan
from keryx.domain.zone import datetime_of, zone_of
from keryx.store.database import Tx
from keryx.store.tables import feed, outbox, standing
from keryx.transactions.command_handlers.context import (
    CommandContext,
    CommandOutcome,
    ago,
    number_of,
    say,
    shortly,
    span,
)
from keryx.transactions.link_accounts import (
    AlreadyLinked,
    LinkBlocked,
    Linked,
    WrongWay,
    enter_link,
    offer_link,
)
from keryx.transactions.manage_access import set_home
from keryx.transactions.manage_schedule import HasEnded, NameTaken, create_schedule, end_schedule
from keryx.transactions.pair_stranger import (
    NoSuchRequest,
    PairingApproved,
    WrongCode,
    approve_pairing,
    deny_pairing,
)

ADD_USAGE = "Write it like /schedule add every 2h | look at the mail"
NO_REQUEST = "No such request waits: it was answered, or its hour is over."
PAIR_USAGE = "/pair approve <number or code> lets one in, /pair deny <number> does not."


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
            return say(context, f"/schedule knows list, add and remove. {ADD_USAGE}")


def _shown_schedules(tx: Tx, context: CommandContext) -> list[standing.ListedSchedule]:
    """Return the person's schedules; in a chat that others read, only those made there."""
    listed = standing.list_schedules(tx, owner_id=context.person.id)
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
        return say(context, f"Say when and what. {ADD_USAGE}")
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
        return say(context, f"There is a schedule {outcome.name!r} already; say the task in other words.")
    made = outcome.schedule
    assert made.due_at is not None, "an active schedule is due"
    when = datetime_of(made.due_at, zone_of(policy.zone))
    return say(context, f"Scheduled as number {made.id}; first at {when:%Y-%m-%d %H:%M %Z}.")


def _remove_schedule(tx: Tx, context: CommandContext, text: str) -> CommandOutcome:
    number = number_of(text)
    if number is None:
        return say(context, "Say which: /schedule remove <number>. /schedule lists them.")
    outcome = end_schedule(tx, number, person_id=context.person.id)
    end = "had ended already" if isinstance(outcome, HasEnded) else "will not run again"
    return say(context, f"{shortly(outcome.schedule.name)!r} {end}.")


def sethome(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Make this chat the platform's home channel."""
    set_home(tx, context.source, by=context.person.id)
    return say(context, f"This chat is now the home channel of {context.source.platform}.")


def link(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Prove that two accounts are the same person: a code from here, entered there."""
    if context.source.chat_type != "dm":
        return say(context, "Others read this chat: use /link in a direct message.")
    if not arguments:
        offered = offer_link(tx, context.ids, source=context.source, person_id=context.person.id)
        return say(
            context,
            f"Your code is {offered.code}. Send /link {offered.code} from your other account within "
            f"{span(offered.expires_at - tx.now)}; that account then is yours too.",
        )
    match enter_link(tx, arguments, source=context.source, person_id=context.person.id):
        case Linked(person=person, source=source):
            return say(context, f"This account and {source.describe()} are both {person.name} now.")
        case AlreadyLinked():
            return say(context, "Both accounts were yours already.")
        case WrongWay():
            return say(context, "You may do more here than there: get a code here and enter it there.")
        case LinkBlocked():
            return say(context, "One of the two accounts may not speak, so nothing was linked.")
        case wrong:
            return say(context, _wrong_code(wrong, now=tx.now))


def pair(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Answer strangers who ask in."""
    word, _, rest = arguments.partition(" ")
    rest = rest.strip()
    match word.lower():
        case "":
            return say(context, _requests(standing.list_requests(tx), now=tx.now))
        case "approve" if rest:
            return _approve_pairing(tx, context, rest)
        case "deny" if number_of(rest) is not None:
            return _deny_pairing(tx, context, int(rest))
        case _:
            return say(context, PAIR_USAGE)


def _requests(waiting: list[standing.Request], *, now: int) -> str:
    if not waiting:
        return "Nobody asks to be let in."
    lines = [
        f"{request.id}. {shortly(request.user_name or request.user_id)} on {request.platform}, "
        f"{ago(request.asked_at, now=now)}"
        for request in waiting
    ]
    return "\n".join([*lines, PAIR_USAGE])


def _approve_pairing(tx: Tx, context: CommandContext, text: str) -> CommandOutcome:
    number = number_of(text)
    request = parse_pairing_code(text) if number is None else number
    match approve_pairing(tx, request, by=context.person.id):
        case PairingApproved(person=person, pairing=pairing):
            delivery_id = outbox.add_delivery(
                tx,
                address=Address.of(pairing.source),
                kind="pairing",
                parts=(TextPart(text="You are let in. Say hello, or /help to see what I can do."),),
                idempotency_key=context.ids.token(),
            )
            feed.add_personal_event(tx, person.id, "delivery", delivery_id)
            return say(context, f"{person.name} is let in as a {person.role}.")
        case NoSuchRequest():
            return say(context, NO_REQUEST)
        case wrong:
            return say(context, _wrong_code(wrong, now=tx.now))


def _deny_pairing(tx: Tx, context: CommandContext, number: int) -> CommandOutcome:
    if isinstance(deny_pairing(tx, number, by=context.person.id), NoSuchRequest):
        return say(context, NO_REQUEST)
    return say(context, "That stranger stays outside.")


def _wrong_code(wrong: WrongCode, *, now: int) -> str:
    if wrong.locked_until is None:
        return "That code is not good: check it, or get a new one."
    return f"Too many wrong codes: try again in {span(wrong.locked_until - now)}."
