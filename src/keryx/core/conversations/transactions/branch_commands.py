"""The commands ``/undo``, ``/redo`` and ``/retry``."""

from typing import Final

from keryx.core.conversations.transactions import branch_session
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    decline,
    messages,
    number_of,
    say,
)
from keryx.errors import InvalidValue
from keryx.store.database import Tx

UNDO_MAX: Final = 100


def parse_turns(arguments: str) -> int:
    """Return the number of turns for ``/undo``. Raise ``InvalidValue`` unless it is from 1 to 100."""
    turns = number_of(arguments) if arguments else 1
    if turns is None or not 1 <= turns <= UNDO_MAX:
        raise InvalidValue(
            f"/undo {arguments[:40]}: give a number of turns from 1 to {UNDO_MAX}, like /undo 2"
        )
    return turns


def undo_turns(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Take back the last turn, or the last turns."""
    turns = parse_turns(arguments)
    outcome = branch_session.undo(tx, context.session_id, actor=context.actor, turns=turns)
    if isinstance(outcome, branch_session.NothingToUndo):
        return decline(context, _too_few(outcome.turns))
    what = "the last turn" if turns == 1 else f"the last {turns} turns"
    left = f"{messages(outcome.message_count)} {'is' if outcome.message_count == 1 else 'are'} left"
    return say(context, f"Took back {what}; {left}. /redo brings it back.")


def _too_few(turns: int) -> str:
    match turns:
        case 0:
            return "There is nothing here to take back."
        case 1:
            return "There is only one turn to take back: write /undo."
        case _:
            return f"There are only {turns} turns to take back: write /undo {turns} for all of them."


def redo_turns(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Show what was taken back."""
    outcome = branch_session.redo(tx, context.session_id, actor=context.actor)
    if isinstance(outcome, branch_session.NothingToRedo):
        return decline(context, "Nothing was taken back here.")
    return say(context, f"Back again: {messages(outcome.message_count)}.")


def retry_turn(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Queue a turn that answers the last message again; its answer is the reply."""
    rerun = branch_session.Rerun(ids=context.ids, source=context.source)
    outcome = branch_session.retry(tx, context.session_id, actor=context.actor, rerun=rerun)
    if isinstance(outcome, branch_session.NothingToRetry):
        return decline(context, "There is nothing to answer again.")
    return CommandOutcome(session_id=context.session_id, queued=outcome.inbox_id)
