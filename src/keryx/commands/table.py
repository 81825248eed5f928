"""The one table of commands: each command's name, arguments, help, least role and handler."""

from typing import Final

from keryx.commands.help import show_help
from keryx.commands.parse_and_run import CommandTable
from keryx.core.approvals.transactions import commands as approvals
from keryx.core.context.transactions import compress_command as compression
from keryx.core.context.transactions import memory_command as memory
from keryx.core.context.transactions import pin_command as pins
from keryx.core.context.transactions import usage_command as usage
from keryx.core.conversations.rules.command import Command
from keryx.core.conversations.transactions import branch_commands as branches
from keryx.core.conversations.transactions import session_commands as conversations
from keryx.core.conversations.transactions import setting_commands as settings
from keryx.core.conversations.transactions.command_context import Handler
from keryx.core.people.transactions import commands as admission
from keryx.core.processes.transactions import commands as processes
from keryx.core.schedules.transactions import commands as schedules
from keryx.core.search.transactions import commands as searching
from keryx.core.turns.transactions import commands as turns

_ROWS: Final[tuple[tuple[Command, Handler], ...]] = (
    (
        Command(name="new", aliases=("reset",), least="guest", help="Start a fresh conversation here."),
        conversations.new,
    ),
    (
        Command(name="resume", arguments="[name or number]", help="Go on with an earlier conversation."),
        conversations.resume_conversation,
    ),
    (Command(name="sessions", help="List your conversations."), conversations.list_conversations),
    (Command(name="search", arguments="<words>", help="Find anything said before."), searching.search),
    (
        Command(name="title", arguments="[text]", help="Show or set this conversation's title."),
        settings.title,
    ),
    (Command(name="retry", least="guest", help="Answer the last message again."), branches.retry_turn),
    (
        Command(name="undo", arguments="[turns]", least="guest", help="Take back the last turn, or several."),
        branches.undo_turns,
    ),
    (Command(name="redo", least="guest", help="Go back to what was undone."), branches.redo_turns),
    (
        Command(name="fork", help="Go on from here in a new conversation."),
        conversations.fork_conversation,
    ),
    (
        Command(
            name="compress",
            arguments="[focus | preview | undo]",
            help="Summarise what came before, to make room.",
        ),
        compression.compress,
    ),
    (
        Command(
            name="pin",
            arguments="[number | list | remove <number>]",
            help="Keep the last answer, or another message, out of summaries.",
        ),
        pins.pin,
    ),
    (Command(name="stop", least="guest", help="Stop the running turn."), turns.stop),
    (Command(name="status", least="guest", help="Show what is going on here."), turns.status),
    (Command(name="usage", help="Show tokens and cost."), usage.usage),
    (
        Command(name="why", help="Tell the fate of the last message, the last reset and the last delivery."),
        turns.why,
    ),
    (
        Command(name="model", arguments="[name]", help="Show or set the model of this conversation."),
        settings.model,
    ),
    (
        Command(name="personality", arguments="[name]", help="Show or set how the agent speaks here."),
        settings.personality,
    ),
    (Command(name="platforms", help="Show the connected platforms."), settings.platforms),
    (
        Command(name="sethome", least="owner", help="Make this chat the platform's home channel."),
        settings.sethome,
    ),
    (
        Command(
            name="schedule", arguments="[list | add … | remove …]", help="Show or change scheduled turns."
        ),
        schedules.schedule,
    ),
    (
        Command(name="processes", help="Show the background processes of this conversation."),
        processes.processes,
    ),
    (
        Command(
            name="approve",
            arguments="[number] [session or always], rules, forget <number>",
            help="Allow what the agent asked for, this time or lastingly; show or forget what you lastingly allow.",
        ),
        approvals.approve,
    ),
    (Command(name="deny", arguments="[number]", help="Refuse what the agent asked for."), approvals.deny),
    (
        Command(
            name="attach", arguments="<session>", help="Join this chat to a conversation held elsewhere."
        ),
        conversations.attach_conversation,
    ),
    (Command(name="detach", help="End what /attach began."), conversations.detach_conversation),
    (
        Command(name="link", arguments="[code]", help="Prove that two accounts are the same person."),
        admission.link,
    ),
    (
        Command(
            name="pair",
            arguments="[approve …, deny …, people, role …, block …, unblock …, "
            "grants, allow …, forbid … or forget …]",
            least="owner",
            help="Answer strangers who ask in; show who is in, and decide who may do what.",
        ),
        admission.pair,
    ),
    (
        Command(
            name="memory",
            arguments="[words, number, edit …, forget …, restore … or undo]",
            help="Show or change what is remembered here.",
        ),
        memory.memory,
    ),
    (
        Command(name="project", arguments="[name]", help="Show or set the project of this conversation."),
        settings.project,
    ),
    (Command(name="help", arguments="[command]", least="guest", help="Show the commands."), show_help),
)

COMMANDS: Final = CommandTable(_ROWS)
