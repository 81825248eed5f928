"""The commands ``/link`` and ``/pair``: linked accounts, requests of strangers, roles and grants.

Only the owner may know the requests and the people, so a reply in a group names nobody.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from keryx.core.conversations.rules.command import UnknownCommand
from keryx.core.conversations.rules.source import check_known_platform
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    Commands,
    ago,
    decline,
    number_of,
    say,
    shortly,
    span,
)
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.transactions.queue_delivery import queue_delivery
from keryx.core.people.rules.access import EVERY, Grant, GrantKind, parse_pairing_code
from keryx.core.people.rules.person import PersonId
from keryx.core.people.rules.toolset import check_toolset
from keryx.core.people.tables import access
from keryx.core.people.transactions import manage_access
from keryx.core.people.transactions.link_accounts import (
    Linked,
    LinkRefusal,
    LinkRefused,
    enter_link,
    offer_link,
)
from keryx.core.people.transactions.pair_stranger import (
    NoSuchRequest,
    PairingApproved,
    WrongCode,
    approve_pairing,
    deny_pairing,
)
from keryx.core.people.views.people_list import ListedPerson, list_people, list_requests
from keryx.core.values.role import ROLES, Role, check_role
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import Tx

NO_REQUEST: Final = "There is no such request: it was answered, or has expired."
NOT_HERE: Final = "Others read this chat: use /pair in a direct message, or in the terminal."
PAIR_USAGE: Final = (
    "/pair approve <number or code> [guest] lets a stranger in, /pair deny <number> does not. /pair people lists the "
    "people, and /pair role, block and unblock change them. /pair grants lists the grants of roles."
)
GRANT_USAGE: Final = (
    "/pair allow <role> <command or toolset> <name or *> [platform] allows a role to use something, /pair forbid "
    "forbids it, and /pair forget goes back to the default. Example: /pair forbid guest command undo telegram"
)
_LINK_REFUSALS: Final[dict[LinkRefusal, str]] = {
    "linked": "Both accounts are linked already.",
    "wrong_way": "This account has more rights than the other: get a code here and enter it there.",
    "blocked": "One of the two accounts is blocked, so nothing was linked.",
}
_GRANT_KINDS: Final[dict[str, GrantKind]] = {"command": "command", "toolset": "toolset"}


def link(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Link two accounts of a person: issue a code here, or enter a code from the other account."""
    if context.source.chat_type != "dm":
        return say(context, "Others read this chat: use /link in a direct message.")
    if not arguments:
        offered = offer_link(tx, context.ids, source=context.source, person_id=context.person.id)
        return say(
            context,
            f"Your code is {offered.code}. Send /link {offered.code} from your other account within "
            f"{span(offered.expires_at - tx.now)} to link both accounts.",
        )
    match enter_link(tx, arguments, source=context.source, person_id=context.person.id):
        case Linked(reply=reply):
            return say(context, reply)
        case LinkRefused(reason=reason):
            return say(context, _LINK_REFUSALS[reason])
        case wrong:
            return say(context, _wrong_code(wrong, now=tx.now))


def pair(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Answer the requests of strangers, and change roles and grants."""
    manage_access.require_owner(tx, context.person.id)
    word, _, rest = arguments.partition(" ")
    word, rest = word.lower(), rest.strip()
    if word == "approve" and rest:
        return say(context, _approve(tx, context, rest))
    number = number_of(rest)
    if word == "deny" and number is not None:
        return say(context, _deny(tx, context, number))
    if context.source.chat_type != "dm":
        return say(context, NOT_HERE)
    part = _PARTS.get(word)
    if part is None:
        # "approve" and "deny" exist, but their argument is missing.
        unknown = "" if word in ("approve", "deny") else f"/pair does not know {shortly(word)!r}. "
        return decline(context, f"{unknown}{PAIR_USAGE}")
    return say(context, part(tx, context, rest))


def _requests(tx: Tx, _context: CommandContext, _rest: str) -> str:
    waiting = list_requests(tx)
    if not waiting:
        return f"Nobody asks to be let in. {PAIR_USAGE}"
    lines = [
        f"{request.id}. {shortly(request.user_name or request.user_id)} on {request.platform}, "
        f"{ago(request.asked_at, now=tx.now)}"
        for request in waiting
    ]
    return "\n".join([*lines, PAIR_USAGE])


def _approve(tx: Tx, context: CommandContext, text: str) -> str:
    before, _, last = text.rpartition(" ")
    role: Role = "member"
    if before and last.lower() in ROLES:
        text, role = before.strip(), check_role(last.lower())
    number = number_of(text)
    request = parse_pairing_code(text) if number is None else number
    match approve_pairing(tx, request, by=context.person.id, role=role):
        case PairingApproved(person=person, pairing=pairing):
            queue_delivery(
                tx,
                "You are let in. Say hello, or /help to see what I can do.",
                to=Address.of(pairing.source),
                key=context.ids.token(),
                kind="pairing",
                told=person.id,
            )
            is_private = context.source.chat_type == "dm"
            who = shortly(person.name) if is_private else f"Who made request {pairing.id}"
            return f"{who} is let in as a {person.role}."
        case NoSuchRequest():
            return NO_REQUEST
        case wrong:
            return _wrong_code(wrong, now=tx.now)


def _deny(tx: Tx, context: CommandContext, number: int) -> str:
    denied = deny_pairing(tx, number, by=context.person.id)
    return "The request was denied." if denied else NO_REQUEST


def _people(tx: Tx, _context: CommandContext, _rest: str) -> str:
    known = list_people(tx)
    return "\n".join(
        [*map(_line, known), "/pair role, /pair block and /pair unblock take a name or a number."]
    )


def _line(person: ListedPerson) -> str:
    where = f" on {', '.join(person.platforms)}" if person.platforms else ""
    blocked = ", blocked" if person.blocked_at is not None else ""
    return f"{person.id}. {shortly(person.name)}, {person.role}{where}{blocked}"


def _role(tx: Tx, context: CommandContext, rest: str) -> str:
    name, _, role = rest.rpartition(" ")
    if not name or role.lower() not in ROLES:
        return "Give a person and a role: /pair role <name or number> <member or guest>."
    person_id = _find_person(tx, name)
    person = manage_access.change_role(tx, person_id, check_role(role.lower()), by=context.person.id)
    return f"{shortly(person.name)} is a {person.role} now."


def _block(tx: Tx, context: CommandContext, rest: str) -> str:
    person = manage_access.block_person(tx, _find_person(tx, rest), by=context.person.id)
    return f"{shortly(person.name)} is blocked. /pair unblock {person.id} ends that."


def _unblock(tx: Tx, context: CommandContext, rest: str) -> str:
    person = manage_access.unblock_person(tx, _find_person(tx, rest), by=context.person.id)
    return f"{shortly(person.name)} is no longer blocked."


def _find_person(tx: Tx, wanted: str) -> PersonId:
    """Return the person with this number or name. Raise ``NotFound`` if there is none, or several."""
    if not wanted:
        raise InvalidValue("Give a name or a number. /pair people lists the people.")
    known = list_people(tx)
    number, name = number_of(wanted), wanted.strip().casefold()
    found = [each for each in known if each.id == number] or [
        each for each in known if each.name.casefold() == name
    ]
    if len(found) == 1:
        return found[0].id
    if not found:
        raise NotFound(f"Nobody here is called {shortly(wanted)!r}. /pair people lists the people.")
    raise NotFound("\n".join(["Several people are called so; give the number of one:", *map(_line, found)]))


def _grants(tx: Tx, _context: CommandContext, _rest: str) -> str:
    lines = [f"{'allow' if each.allow else 'forbid'} {_grant_words(each)}" for each in access.list_grants(tx)]
    return "\n".join([*(lines or ["There are no grants: each role has its default rights."]), GRANT_USAGE])


def _grant(tx: Tx, context: CommandContext, rest: str, *, allow: bool) -> str:
    grant = _parse_grant(rest, allow=allow, commands=context.commands, known=context.settings.platforms)
    manage_access.set_grant(tx, grant, by=context.person.id)
    return f"{'Allowed' if allow else 'Forbidden'}: {_grant_words(grant)}."


def _forget(tx: Tx, context: CommandContext, rest: str) -> str:
    # Accept a platform that is no longer configured.
    grant = _parse_grant(rest, allow=True, commands=context.commands, known=None)
    if not manage_access.remove_grant(tx, grant, by=context.person.id):
        return f"There is no grant for {_grant_words(grant)}. /pair grants lists the grants."
    return f"Deleted the grant for {_grant_words(grant)}."


def _parse_grant(text: str, *, allow: bool, commands: Commands, known: Collection[str] | None) -> Grant:
    """Return the grant that words like ``guest command undo telegram`` describe, or raise ``InvalidValue``."""
    words = text.lower().split()
    if len(words) not in (3, 4) or words[1] not in _GRANT_KINDS:
        raise InvalidValue(GRANT_USAGE)
    role, kind, name = check_role(words[0]), _GRANT_KINDS[words[1]], words[2]
    if kind == "command" and name != EVERY:
        command = commands.find(name)
        if command is None:
            raise InvalidValue(UnknownCommand(name=shortly(name), nearest=commands.nearest(name)).reply)
        name = command.name
    elif name != EVERY:
        check_toolset(name)
    platform = check_known_platform(words[3], known) if len(words) == 4 else None
    return Grant(role=role, kind=kind, name=name, platform=platform, allow=allow)


def _grant_words(grant: Grant) -> str:
    return " ".join([grant.role, grant.kind, grant.name, *([grant.platform] if grant.platform else [])])


def _wrong_code(wrong: WrongCode, *, now: int) -> str:
    if wrong.locked_until is None:
        return "That code is not valid: check it, or get a new one."
    return f"Too many wrong codes: try again in {span(wrong.locked_until - now)}."


_PARTS: Final[dict[str, Callable[[Tx, CommandContext, str], str]]] = {
    "": _requests,
    "people": _people,
    "role": _role,
    "block": _block,
    "unblock": _unblock,
    "grants": _grants,
    "allow": partial(_grant, allow=True),
    "forbid": partial(_grant, allow=False),
    "forget": _forget,
}
