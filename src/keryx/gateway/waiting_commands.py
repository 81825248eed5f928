"""Commands that only a running surface can answer: they wait in the inbox until one does, also over a crash."""

from collections.abc import Sequence

from keryx.core.accounts.views import list_platforms
from keryx.core.context.rules.compaction import KEPT_TURNS, WINDOW_TOKENS, plan_by_hand
from keryx.core.context.views.gauge import show_gauge
from keryx.core.context.views.pins import pinned_seqs
from keryx.core.conversations.rules.command import ParsedCommand
from keryx.core.conversations.rules.message import text_of
from keryx.core.conversations.views.transcript import model_messages
from keryx.core.search.views.search import SearchResult, search
from keryx.core.turns.transactions.answer_command import answer_command
from keryx.core.turns.views.turn import WaitingCommand, audience_at, list_commands
from keryx.core.upkeep.views.nodes import may_hear_troubles
from keryx.gateway.runtime.log import concerning, log_of
from keryx.gateway.runtime.runtime import Runtime
from keryx.store.database import ReadTx

HITS_SHOWN = 8
SESSIONS_SHOWN = 5
NOTHING_TO_COVER = f"There is too little to summarise: the last {KEPT_TURNS} turns stay as they are."
PREVIEW = (
    "{count:,} messages, about {before:,} tokens (numbers {first} to {last}), would become a summary of at most about "
    "{after:,} tokens; what was said after them stays as it is. /compress does it."
)
AROUND_PINNED = " What is pinned between them stays too."

_log = log_of("commands")


async def answer_waiting(runtime: Runtime) -> int:
    """Answer every command that waits; return how many there were."""
    waiting = await runtime.database.read(list_commands)
    for command in waiting:
        with concerning(session=command.session_id, inbox=command.id):
            await _answer(runtime, command)
    return len(waiting)


async def _answer(runtime: Runtime, command: WaitingCommand) -> None:
    try:
        reply = await runtime.database.read(lambda tx: _reply(tx, command, runtime))
    except Exception as error:  # noqa: BLE001 - one that cannot be answered must not hold up the others
        _log.failed("a command failed", error=error)
        reply = "That did not work; the log says why."
    await runtime.insist(
        lambda tx: answer_command(tx, command.id, reply=reply, ids=runtime.ids), what="a command"
    )


def _reply(tx: ReadTx, command: WaitingCommand, runtime: Runtime) -> str:
    parsed = runtime.commands.parse(text_of(command.parts))
    assert isinstance(parsed, ParsedCommand), "only what was read as a command waits as one"
    match parsed.name:
        case "search":
            return _search(tx, command, parsed.arguments)
        case "platforms":
            return _platforms(tx, command, runtime.troubles())
        case _:
            return _preview(tx, command)


def _platforms(tx: ReadTx, command: WaitingCommand, troubles: Sequence[str]) -> str:
    assert command.person_id is not None, "a command is somebody's"
    audience_id = audience_at(tx, command.source, command.session_id)
    may_hear = may_hear_troubles(tx, person_id=command.person_id, audience_id=audience_id)
    return "\n".join(["Connected now:", *list_platforms(tx), *(troubles if may_hear else ())])


def _search(tx: ReadTx, command: WaitingCommand, text: str) -> str:
    assert command.person_id is not None, "a command is somebody's"
    found = search(
        tx,
        text,
        person_id=command.person_id,
        limit=HITS_SHOWN,
        neighbours=0,
        audience_id=audience_at(tx, command.source, command.session_id),
    )
    return show_hits(found)


def _preview(tx: ReadTx, command: WaitingCommand) -> str:
    """Say what ``/compress`` would do."""
    assert command.person_id is not None, "a command is somebody's"
    gauge = show_gauge(tx, command.session_id, person_id=command.person_id)
    items = model_messages(tx, command.session_id, person_id=command.person_id)
    pinned = pinned_seqs(tx, command.session_id)
    plans = plan_by_hand(items, window=WINDOW_TOKENS if gauge is None else gauge.window, pinned=pinned)
    if not plans:
        return NOTHING_TO_COVER
    preview = PREVIEW.format(
        count=sum(plan.message_count for plan in plans),
        before=sum(plan.tokens for plan in plans),
        first=plans[0].first_seq,
        last=plans[-1].last_seq,
        after=sum(plan.summary_tokens for plan in plans),
    )
    return f"{preview}{AROUND_PINNED}" if len(plans) > 1 else preview


def show_hits(found: SearchResult) -> str:
    """Return what a search found as a text for a chat."""
    if not found.sessions:
        return "\n".join(["Nothing found.", *found.nothing_because, *found.notes])
    lines: list[str] = []
    for session in found.sessions[:SESSIONS_SHOWN]:
        lines.append(f"{session.title or session.session_id} ({session.session_id})")
        lines += [f"  {hit.role or 'title'}: {hit.snippet.text}" for hit in session.hits]
    more = ["There is more; search with more words."] if found.next else []
    return "\n".join([*lines, *more, *found.notes])
