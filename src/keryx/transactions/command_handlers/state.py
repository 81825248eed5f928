"""``/status``, ``/usage``, ``/why``, ``/processes``, ``/search``, ``/platforms``: how things are."""

from keryx.domain.turn import gives_way, turn_word
from keryx.store.database import Tx
from keryx.store.tables import inbox, keys, sessions, standing, turns
from keryx.transactions.command_handlers.context import (
    CommandContext,
    CommandOutcome,
    ago,
    ask_surface,
    decline,
    messages,
    say,
    shortly,
)
from keryx.transactions.command_handlers.usage import used_lines

PROCESSES_SHOWN = 10
NO_PROCESSES = "This conversation has no background processes."

_FATES = {
    "answered": "was answered",
    "merged": "was answered together with a later one",
    "cancelled": "was cancelled",
    "failed": "could not be answered",
    "command": "was a command",
}
_WAITING = {"ready": "waits for its turn", "claimed": "is being answered"}
_DELIVERIES = {
    "ready": "waits to be sent",
    "sending": "is being sent",
    "sent": "was sent",
    "rejected": "was refused",
    "unknown": "may or may not have arrived",
    "dead": "could not be sent",
}


def status(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Show what is going on here."""
    session = sessions.get_visible(tx, context.session_id, person_id=context.person.id)
    turn = turns.find_live_turn(tx, session.id)
    open_items = inbox.count_open(tx, session.id)
    lines = [
        f"{shortly(session.title) if session.title else 'Untitled'} ({session.id})",
        f"{messages(session.message_count)}; last active {ago(session.last_active_at, now=tx.now)}.",
        "Nothing is running."
        if turn is None or gives_way(turn.purpose)
        else f"The agent is {turn_word(turn.state)}.",
    ]
    if open_items:
        lines.append(f"{open_items} not answered yet.")
    surfaces = len(keys.list_keys(tx, session.id))
    if surfaces > 1:
        lines.append(f"Held in {surfaces} places.")
    return say(context, "\n".join(lines))


def usage(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Show tokens and estimated cost of this conversation and of today, by model, and how full the context is."""
    gauge = turns.find_gauge(tx, context.session_id)
    full = [] if gauge is None else gauge.lines()
    return say(context, "\n".join([*used_lines(tx, context), *full]))


def why(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Tell the fate of the last message, the last reset and the last delivery."""
    trouble = turns.find_trouble(tx, context.session_id)
    lines = [
        *([] if trouble is None else [trouble.told]),
        _last_message(standing.find_last_message(tx, context.session_id), now=tx.now),
        _last_delivery(standing.find_last_delivery(tx, context.session_id), now=tx.now),
    ]
    reset = standing.find_last_reset(tx, context.session_id)
    if reset is not None:
        lines.append(
            f"This conversation began by a reset {ago(reset.created_at, now=tx.now)}; "
            f"/resume {reset.from_session_id} brings the one before back."
        )
    return say(context, "\n".join(lines))


def _last_message(message: standing.LastMessage | None, *, now: int) -> str:
    if message is None:
        return "No message has come in yet."
    fate = _WAITING[message.state] if message.fate is None else _FATES[message.fate]
    note = f" ({message.fate_note})" if message.fate_note else ""
    return f"The last message came {ago(message.received_at, now=now)} and {fate}{note}."


def _last_delivery(delivery: standing.LastDelivery | None, *, now: int) -> str:
    if delivery is None:
        return "No answer has gone out yet."
    tries = f" after {delivery.attempts} attempts" if delivery.attempts > 1 else ""
    repeated = "; it may have been shown twice" if delivery.maybe_repeated_at is not None else ""
    error = f": {delivery.error}" if delivery.error else ""
    return (
        f"The last answer, of {ago(delivery.created_at, now=now)}, {_DELIVERIES[delivery.state]} "
        f"on {delivery.platform}{tries}{repeated}{error}."
    )


def processes(tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Show the background processes of this conversation, newest first."""
    listed = standing.list_processes(tx, context.session_id, limit=PROCESSES_SHOWN)
    if not listed:
        return say(context, f"{NO_PROCESSES} The agent starts them when something is to go on by itself.")
    return say(context, "\n".join(_process(process, now=tx.now) for process in listed))


def _process(process: standing.ListedProcess, *, now: int) -> str:
    code = "" if process.exit_code is None else f" with {process.exit_code}"
    since = process.started_at if process.ended_at is None else process.ended_at
    return f"{process.id}. {shortly(process.command)}: {process.state}{code}, {ago(since, now=now)}"


def search(_tx: Tx, context: CommandContext, arguments: str) -> CommandOutcome:
    """Leave finding to whoever has the index."""
    if not arguments:
        return decline(context, "Say what to look for: /search <words>.")
    return ask_surface(context, "search", arguments)


def platforms(_tx: Tx, context: CommandContext, _arguments: str) -> CommandOutcome:
    """Leave what is connected to the running gateway."""
    return ask_surface(context, "platforms", "")
