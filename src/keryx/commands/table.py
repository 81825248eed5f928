"""The one table of commands: each command's name, arguments, help, least role and handler."""

from collections.abc import Mapping
from typing import Final

from keryx.commands.command_table import CommandTable, show_help
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

_HANDLERS: Final[Mapping[Command, Handler]] = {
    Command(
        name="new", aliases=("reset",), least="guest", help="Start a fresh conversation here."
    ): conversations.new,
    Command(
        name="resume", arguments="[name or number]", help="Continue an earlier conversation."
    ): conversations.resume_conversation,
    Command(name="sessions", help="List your conversations."): conversations.list_conversations,
    Command(name="search", arguments="<words>", help="Search all conversations."): searching.search,
    Command(name="title", arguments="[text]", help="Show or set this conversation's title."): settings.title,
    Command(name="retry", least="guest", help="Answer the last message again."): branches.retry_turn,
    Command(
        name="undo", arguments="[turns]", least="guest", help="Undo the last turn, or several."
    ): branches.undo_turns,
    Command(name="redo", least="guest", help="Restore the turns that were undone."): branches.redo_turns,
    Command(name="fork", help="Continue from here in a new conversation."): conversations.fork_conversation,
    Command(
        name="compress",
        arguments="[focus | preview | undo]",
        help="Summarise earlier messages to free context.",
    ): compression.compress,
    Command(
        name="pin",
        arguments="[number | list | remove <number>]",
        help="Keep the last answer, or another message, out of summaries.",
    ): pins.pin,
    Command(name="stop", least="guest", help="Stop the running turn."): turns.stop,
    Command(name="status", least="guest", help="Show the state of this conversation."): turns.status,
    Command(name="usage", help="Show tokens and cost."): usage.usage,
    Command(
        name="why", help="Explain the last message's outcome, the last reset and the last delivery."
    ): turns.why,
    Command(
        name="model", arguments="[name]", help="Show or set the model of this conversation."
    ): settings.model,
    Command(
        name="personality", arguments="[name]", help="Show or set how the agent speaks here."
    ): settings.personality,
    Command(name="platforms", help="Show the connected platforms."): settings.platforms,
    Command(
        name="sethome", least="owner", help="Make this chat the platform's home channel."
    ): settings.sethome,
    Command(
        name="schedule", arguments="[list | add … | remove …]", help="Show or change scheduled turns."
    ): schedules.schedule,
    Command(
        name="processes", help="Show the background processes of this conversation."
    ): processes.processes,
    Command(
        name="approve",
        arguments="[number] [session or always], rules, forget <number>",
        help="Approve the agent's request, once or permanently; list or forget your standing approvals.",
    ): approvals.approve,
    Command(name="deny", arguments="[number]", help="Deny the agent's request."): approvals.deny,
    Command(
        name="attach", arguments="<session>", help="Join this chat to a conversation in another chat."
    ): conversations.attach_conversation,
    Command(
        name="detach", help="Leave the conversation that /attach joined."
    ): conversations.detach_conversation,
    Command(name="link", arguments="[code]", help="Link two accounts of the same person."): admission.link,
    Command(
        name="pair",
        arguments="[approve …, deny …, people, role …, block …, unblock …, "
        "grants, allow …, forbid … or forget …]",
        least="owner",
        help="Answer requests for access; list people, and manage roles and grants.",
    ): admission.pair,
    Command(
        name="memory",
        arguments="[words, number, edit …, forget …, restore … or undo]",
        help="Show or change the notes in memory.",
    ): memory.memory,
    Command(
        name="project", arguments="[name]", help="Show or set the project of this conversation."
    ): settings.project,
    Command(name="help", arguments="[command]", least="guest", help="Show the commands."): show_help,
}

COMMANDS: Final = CommandTable(_HANDLERS)
