"""The commands ``/new``, ``/resume``, ``/sessions``, ``/attach``, ``/detach`` and ``/fork``."""

from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import is_chat_key
from keryx.core.conversations.rules.title import match_titles
from keryx.core.conversations.tables import sessions
from keryx.core.conversations.transactions import switch_session
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    ago,
    decline,
    messages,
    number_of,
    say,
    shortly,
)
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.conversations.views.find_session import NAMED_MAX, NUMBERED_MAX
from keryx.core.conversations.views.session_list import Session, list_recent
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.views.session_deliveries import was_shown_at
from keryx.store.database import Tx

OF_CHAT_MAX = 50
"""The last conversation of the chat is searched among this many."""

_REFUSALS: dict[switch_session.SwitchRefusal, str] = {
    "audience": "That conversation has other readers than this chat, so it cannot be shown here.",
    "here": "This chat is part of that conversation already.",
    "closed": "That conversation is not open anywhere. /resume goes on with it here.",
    "not_attached": "No other chat shows this conversation, so there is nothing to leave. /new starts a fresh one.",
}


def new(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Start a fresh conversation here."""
    switched = switch_session.start_new(tx, context.ids, context.surface)
    return say(
        context,
        "Fresh conversation. /resume brings the last one back.",
        session_id=switched.session_id,
    )


def list_conversations(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """List the conversations of this chat's audience, with the numbers that ``/resume`` takes."""
    listed = _listed(tx, context, NUMBERED_MAX)
    if not listed:
        return say(context, "There are no conversations yet. Write something to start one.")
    lines = [
        f"{number}. {_mark(session, context)}{shortly(session.name)} "
        f"({messages(session.message_count)}, {ago(session.last_active_at, now=tx.now)})"
        for number, session in enumerate(listed, 1)
    ]
    return say(context, "\n".join([*lines, "/resume <number> goes on with one."]))


def _mark(session: Session, context: CommandContext) -> str:
    if session.id == context.session_id:
        return "→ "
    return "* " if session.pinned_at is not None else ""


def resume_conversation(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Continue an earlier conversation: the last one, or one by number, name or id."""
    found = _choose(tx, context, arguments)
    if isinstance(found, str):
        return decline(context, found)
    return _switched(
        context,
        switch_session.resume(tx, context.surface, found.id),
        f"Going on with {shortly(found.name)!r}.",
    )


def attach_conversation(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show a conversation of another chat in this chat too."""
    if not arguments:
        return decline(context, "Say which: /attach <number, name or id>. /sessions lists them.")
    found = _choose(tx, context, arguments)
    if isinstance(found, str):
        return decline(context, found)
    joined = f"This chat is now part of {shortly(found.name)!r}. /detach ends that."
    return _switched(context, switch_session.attach(tx, context.surface, found.id), joined)


def detach_conversation(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Leave the conversation that ``/attach`` joined."""
    left = switch_session.detach(tx, context.ids, context.surface)
    return _switched(context, left, "This chat has left the conversation and has a fresh one.")


def fork_conversation(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Continue from here in a new conversation."""
    if sessions.get_visible(tx, context.session_id, person_id=context.person.id).message_count == 0:
        return decline(context, "Nothing was said here yet, so there is nothing to fork.")
    fork_id = fork_session(tx, context.ids, context.session_id, person=context.person)
    switched = switch_session.resume(tx, context.surface, fork_id)
    return _switched(context, switched, "This is a fork now; /resume brings back where it came from.")


def _switched(
    context: CommandContext, outcome: switch_session.Switched | switch_session.SwitchRefused, reply: str
) -> CommandOutcome:
    if isinstance(outcome, switch_session.SwitchRefused):
        return decline(context, _REFUSALS[outcome.reason])
    return say(context, reply, session_id=outcome.session_id)


def _listed(tx: Tx, context: CommandContext, limit: int) -> list[Session]:
    listed = [
        session
        for audience_id in switch_session.list_audiences(tx, context.surface)
        for session in list_recent(tx, audience_id=audience_id, limit=limit)
    ]
    listed.sort(key=lambda each: (each.pinned_at is not None, each.last_active_at, each.id), reverse=True)
    return listed[:limit]


def _choose(tx: Tx, context: CommandContext, wanted: str) -> Session | str:
    """Return the conversation that ``wanted`` means, or a reply if it means none or several."""
    listed = _listed(tx, context, NAMED_MAX)
    if not wanted:
        return _last_here(tx, context, listed) or "There is no other conversation to go on with."
    number = number_of(wanted)
    if number is not None:
        if 1 <= number <= min(len(listed), NUMBERED_MAX):
            return listed[number - 1]
        return f"There is no number {shortly(wanted)}. /sessions lists the conversations with their numbers."
    return _named(listed, wanted)


def _last_here(tx: Tx, context: CommandContext, listed: list[Session]) -> Session | None:
    """Return the last conversation of this chat, or of any chat if there is none, except the current one."""
    others = [session for session in listed if session.id != context.session_id]
    others.sort(key=lambda session: session.last_active_at, reverse=True)
    address = str(Address.of(context.source))
    here = (session for session in others[:OF_CHAT_MAX] if was_shown_at(tx, session.id, address))
    found = next(here, None) if is_chat_key(context.key) else None
    return found or next(iter(others), None)


def _named(listed: list[Session], wanted: str) -> Session | str:
    matching = [session for session in listed if session.id == SessionId(wanted)] or [
        listed[index] for index in match_titles([session.title for session in listed], wanted)
    ]
    if not matching:
        return f"There is no conversation called {shortly(wanted)!r} here. /sessions lists them."
    if len(matching) == 1:
        return matching[0]
    names = "\n".join(f"- {shortly(session.name)} ({session.id})" for session in matching[:NUMBERED_MAX])
    return f"Several conversations are called so; give the id of one:\n{names}"
