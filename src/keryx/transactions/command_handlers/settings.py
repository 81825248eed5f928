"""``/title``, ``/model``, ``/personality``, ``/project``, ``/memory``: what is set and kept for a conversation."""

from keryx.domain.settings import decode_personality
from keryx.store.database import Tx
from keryx.store.tables import memories, projects, sessions
from keryx.transactions.change_session import rename, set_model, set_personality, set_project
from keryx.transactions.command_handlers.context import (
    CommandContext,
    CommandOutcome,
    ask_surface,
    say,
)
from keryx.transactions.manage_project import ProjectNameTaken, ProjectPlan, archive_project, create_project

NONE = "none"
"""The word that takes a setting away."""
MEMORIES_SHOWN = 20
MEMORIES_SEARCHED = 1_000


def title(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show or set this conversation's title."""
    if not arguments:
        shown = _session(tx, context).title
        return say(context, f"This conversation is called {shown!r}." if shown else "It has no title yet.")
    rename(tx, context.session_id, arguments, person_id=context.person.id)
    return say(context, f"This conversation is now called {_session(tx, context).title!r}.")


def model(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show or set the model of this conversation."""
    if not arguments:
        name = _session(tx, context).model
        return say(context, f"The model here is {name}." if name else "The configured model answers here.")
    name = None if arguments.lower() == NONE else arguments
    set_model(tx, context.session_id, name, person_id=context.person.id)
    return say(context, f"From the next turn on, {name or 'the configured model'} answers here.")


def personality(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show or take away how the agent speaks here; a name is looked up by whoever knows the configuration."""
    if not arguments:
        stored = _session(tx, context).personality
        if stored is None:
            return say(context, "The configured personality speaks here.")
        return say(context, f"Here speaks {decode_personality(stored).name}.")
    if arguments.lower() == NONE:
        set_personality(tx, context.session_id, None, person_id=context.person.id)
        return say(context, "From the next turn on, the configured personality speaks here.")
    return ask_surface(context, "personality", arguments)


def project(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show or set the project of this conversation; a name that is new makes a project."""
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
        set_project(tx, context.session_id, None, person_id=owner_id)
        return say(context, "This conversation is in no project now.")
    name = " ".join(arguments.split())
    set_project(tx, context.session_id, _project_id(tx, name, owner_id=owner_id), person_id=owner_id)
    return say(context, f"This conversation is now in the project {name!r}.")


def memory(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Show what is remembered for those who read this chat, newest first, or what of it has these words."""
    audience_id = _session(tx, context).audience_id
    words = arguments.casefold().split()
    kept = memories.list_memories(tx, audience_id=audience_id, limit=MEMORIES_SEARCHED)
    found = [item for item in kept if all(word in item.text.casefold() for word in words)]
    if not found:
        return say(context, "Nothing is remembered about that." if words else "Nothing is remembered yet.")
    lines = [f"- {item.text}" for item in found[:MEMORIES_SHOWN]]
    if len(found) > MEMORIES_SHOWN:
        lines.append(f"… and {len(found) - MEMORIES_SHOWN} more; name words to find them.")
    return say(context, "\n".join(lines))


def _session(tx: Tx, context: CommandContext) -> sessions.SessionRecord:
    return sessions.get_visible(tx, context.session_id, person_id=context.person.id)


def _project_id(tx: Tx, name: str, *, owner_id: int) -> int:
    match create_project(tx, ProjectPlan(name=name), person_id=owner_id):
        case ProjectNameTaken():
            known = projects.find_by_name(tx, owner_id=owner_id, name=name)
            assert known is not None
            archive_project(tx, known.id, person_id=owner_id, archived=False)
            return known.id
        case saved:
            return saved.project.id
