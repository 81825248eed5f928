"""The commands ``/title``, ``/model``, ``/personality``, ``/project``, ``/sethome`` and ``/platforms``."""

from difflib import get_close_matches

from keryx.core.conversations.rules.session_settings import decode_personality
from keryx.core.conversations.tables import projects, sessions
from keryx.core.conversations.transactions import change_session
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    ask_surface,
    decline,
    say,
)
from keryx.core.conversations.transactions.manage_project import (
    ProjectNameTaken,
    ProjectPlan,
    archive_project,
    create_project,
)
from keryx.core.deliveries.transactions.set_home import set_home
from keryx.core.values.model_name import check_model_name
from keryx.store.database import Tx

NONE = "none"
"""The argument that removes a setting."""


def title(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show or set this conversation's title."""
    if not arguments:
        shown = _session(tx, context).title
        return say(context, f"This conversation is called {shown!r}." if shown else "It has no title yet.")
    change_session.rename(tx, context.session_id, arguments, person_id=context.person.id)
    return say(context, f"This conversation is now called {_session(tx, context).title!r}.")


def model(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show or set the model of this conversation."""
    answering = context.settings.answering
    otherwise = answering.on(context.source.platform)
    if not answering.takes_models:
        return say(
            context,
            f"Answers here come from {otherwise}. It chooses its own models, so /model changes nothing.",
        )
    if not arguments:
        name = _session(tx, context).model
        return say(
            context,
            f"The model here is {name}. /model none goes back to {otherwise}."
            if name
            else f"Answers here come from {otherwise}. /model <provider:name> chooses another model, "
            "such as /model openai:gpt-5.",
        )
    name = None if arguments.lower() == NONE else check_model_name(arguments)
    change_session.set_model(tx, context.session_id, name, person_id=context.person.id)
    if name is None:
        return say(context, f"From the next turn on, {otherwise} answers here.")
    return say(context, f"From the next turn on, {name} answers here. /model none goes back to {otherwise}.")


def personality(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show, set or remove the personality of this conversation."""
    known = context.settings.personalities
    if not arguments:
        return say(context, _speaking(_session(tx, context).personality, sorted(known)))
    if arguments.lower() == NONE:
        change_session.set_personality(tx, context.session_id, None, person_id=context.person.id)
        return say(context, "From the next turn on, the agent has no personality here.")
    by_folded = {name.casefold(): name for name in known}
    name = by_folded.get(arguments.casefold())
    if name is None:
        near = get_close_matches(arguments.casefold(), by_folded, n=3)
        hint = f" Did you mean {' or '.join(by_folded[each] for each in near)}?" if near else ""
        return decline(context, f"There is no personality {arguments[:40]!r}.{hint} {_choice(sorted(known))}")
    change_session.set_personality(tx, context.session_id, known[name], person_id=context.person.id)
    return say(context, f"From the next turn on, the agent speaks as {name} here.")


def _speaking(stored: str | None, names: list[str]) -> str:
    if stored is None:
        return f"The agent has no personality here. {_choice(names)}"
    return f"The agent speaks as {decode_personality(stored).name} here. {_choice(names)}"


def _choice(names: list[str]) -> str:
    if not names:
        return "None is configured: add some under `personalities` in the configuration."
    return f"/personality <name> sets one of {', '.join(names)}; /personality none removes it."


def project(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show, set or remove the project of this conversation; create the project if it does not exist."""
    owner_id = context.person.id
    if not arguments:
        project_id = _session(tx, context).project_id
        mine = {known.id: known.name for known in projects.list_projects(tx, owner_id=owner_id)}
        if project_id is None or project_id not in mine:
            return say(
                context, "This conversation is in no project of yours. /project <name> puts it into one."
            )
        return say(context, f"This conversation is in the project {mine[project_id]!r}.")
    if arguments.lower() == NONE:
        change_session.set_project(tx, context.session_id, None, person_id=owner_id)
        return say(context, "This conversation is in no project now.")
    name = " ".join(arguments.split())
    change_session.set_project(
        tx, context.session_id, _project_id(tx, name, owner_id=owner_id), person_id=owner_id
    )
    return say(context, f"This conversation is now in the project {name!r}.")


def sethome(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Make this chat the platform's home channel."""
    set_home(tx, context.source, by=context.person.id)
    return say(context, f"This chat is now the home channel of {context.source.platform}.")


def platforms(_tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Ask the running gateway which platforms are connected."""
    return ask_surface(context, "platforms", "")


def _session(tx: Tx, context: CommandContext) -> sessions.Session:
    return sessions.get_visible(tx, context.session_id, person_id=context.person.id)


def _project_id(tx: Tx, name: str, *, owner_id: int) -> int:
    match create_project(tx, ProjectPlan(name=name), person_id=owner_id):
        case ProjectNameTaken():
            known = projects.find_by_name(tx, owner_id=owner_id, name=name)
            assert known is not None
            archive_project(tx, known.id, person_id=owner_id, archived=False)
            return known.id
        case saved:
            return saved.id
