"""``/undo``, ``/redo``, ``/retry``, ``/compress``, ``/stop``: what was said, and what is being said."""

from keryx.domain.command import parse_turns
from keryx.store.database import Tx
from keryx.transactions.branch_session import (
    NothingToRedo,
    NothingToRetry,
    NothingToUndo,
    Rerun,
    redo,
    retry,
    undo,
)
from keryx.transactions.command_handlers.context import (
    CommandContext,
    CommandOutcome,
    ask_surface,
    decline,
    messages,
    say,
)
from keryx.transactions.compress_session import compress_session
from keryx.transactions.cover_messages import uncover_last
from keryx.transactions.fail_turn import stop_session

NOTHING_SAID = "Nothing was said here yet, so there is nothing to summarise."
_STOPPED = {
    "stopping": "Stopping.",
    "stopped": "Stopped.",
    "idle": "Nothing is running here.",
}


def undo_turns(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Take back the last turn, or several."""
    turns = parse_turns(arguments)
    outcome = undo(tx, context.session_id, person_id=context.person.id, turns=turns)
    if isinstance(outcome, NothingToUndo):
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
    """Go back to what was undone."""
    outcome = redo(tx, context.session_id, person_id=context.person.id)
    if isinstance(outcome, NothingToRedo):
        return decline(context, "Nothing was taken back here.")
    return say(context, f"Back again: {messages(outcome.message_count)}.")


def retry_turn(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Have the last message answered again; the answer itself is the reply."""
    rerun = Rerun(ids=context.ids, source=context.source)
    outcome = retry(tx, context.session_id, person_id=context.person.id, rerun=rerun)
    if isinstance(outcome, NothingToRetry):
        return decline(context, "There is nothing to answer again.")
    return CommandOutcome(session_id=context.session_id, queued=outcome.inbox_id)


def compress(tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Have what came before summarised, show what that would be, or take the last summary back."""
    person_id = context.person.id
    match arguments.lower():
        case "preview":
            return ask_surface(context, "compress", arguments)
        case "undo":
            dropped = uncover_last(tx, context.session_id, person_id=person_id)
            if dropped is None:
                return decline(context, "No summary stands for anything here.")
            what = f"messages {dropped.first_seq} to {dropped.last_seq}"
            return say(context, f"The summary of {what} is taken back: the model reads what it stood for.")
        case _:
            asked = compress_session(
                tx,
                context.session_id,
                focus=arguments,
                person_id=person_id,
                source=context.source,
                ids=context.ids,
            )
            if asked is None:
                return decline(context, NOTHING_SAID)
            return CommandOutcome(session_id=context.session_id, queued=asked)


def stop(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Stop the running turn."""
    return say(context, _STOPPED[stop_session(tx, context.session_id, holder=context.ids.token())])
