"""``/status``, ``/why``, ``/stop``: show and stop the work in a conversation."""

from typing import Final

from keryx.core.conversations.tables import session_keys, sessions
from keryx.core.conversations.transactions.command_context import (
    CommandContext,
    CommandOutcome,
    ago,
    messages,
    say,
    shortly,
)
from keryx.core.deliveries.views.session_deliveries import LastDelivery, find_last_delivery
from keryx.core.turns.rules.turn import turn_word, yields_to_others
from keryx.core.turns.tables import inbox, turns
from keryx.core.turns.transactions.fail_turn import stop_session
from keryx.core.turns.views.session_history import LastMessage, find_last_message, find_last_reset
from keryx.store.database import Tx

_FATES: Final = {
    "answered": "was answered",
    "merged": "was answered together with a later one",
    "cancelled": "was cancelled",
    "failed": "could not be answered",
    "command": "was a command",
}
_WAITING: Final = {"ready": "waits for its turn", "claimed": "is being answered"}
_DELIVERIES: Final = {
    "ready": "waits to be sent",
    "sending": "is being sent",
    "sent": "was sent",
    "rejected": "was refused",
    "unknown": "may or may not have arrived",
    "dead": "could not be sent",
}
_STOPPED: Final = {
    "stopping": "Stopping.",
    "stopped": "Stopped.",
    "idle": "Nothing is running here.",
}


def status(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Show the state of this conversation."""
    session = sessions.get_visible(tx, context.session_id, person_id=context.person.id)
    turn = turns.find_live_turn(tx, session.id)
    open_items = inbox.count_open(tx, session.id)
    lines = [
        f"{shortly(session.title) if session.title else 'Untitled'} ({session.id})",
        f"{messages(session.message_count)}; last active {ago(session.last_active_at, now=tx.now)}.",
        "Nothing is running."
        if turn is None or yields_to_others(turn.purpose)
        else f"The agent is {turn_word(turn.state)}.",
    ]
    if open_items:
        lines.append(f"{open_items} waiting for an answer.")
    surfaces = len(session_keys.list_keys(tx, session.id))
    if surfaces > 1:
        lines.append(f"Shown in {surfaces} chats.")
    return say(context, "\n".join(lines))


def why(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Show the fate of the last message, the last reset and the last delivery."""
    trouble = turns.find_trouble(tx, context.session_id)
    lines = [
        *([] if trouble is None else [trouble.text]),
        _last_message(find_last_message(tx, context.session_id), now=tx.now),
        _last_delivery(find_last_delivery(tx, context.session_id), now=tx.now),
    ]
    reset = find_last_reset(tx, context.session_id)
    if reset is not None:
        lines.append(
            f"This conversation began by a reset {ago(reset.created_at, now=tx.now)}; "
            f"/resume {reset.from_session_id} returns to the one before."
        )
    return say(context, "\n".join(lines))


def _last_message(message: LastMessage | None, *, now: int) -> str:
    if message is None:
        return "No message has come in yet."
    fate = _WAITING[message.state] if message.fate is None else _FATES[message.fate]
    note = f" ({message.fate_note})" if message.fate_note else ""
    return f"The last message came {ago(message.received_at, now=now)} and {fate}{note}."


def _last_delivery(delivery: LastDelivery | None, *, now: int) -> str:
    if delivery is None:
        return "No answer has gone out yet."
    tries = f" after {delivery.attempts} attempts" if delivery.attempts > 1 else ""
    repeated = "; it may have been shown twice" if delivery.maybe_repeated_at is not None else ""
    error = f": {delivery.error}" if delivery.error else ""
    return (
        f"The last answer, of {ago(delivery.created_at, now=now)}, {_DELIVERIES[delivery.state]} "
        f"on {delivery.platform}{tries}{repeated}{error}."
    )


def stop(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Stop the running turn."""
    return say(context, _STOPPED[stop_session(tx, context.session_id, holder=context.ids.token())])
