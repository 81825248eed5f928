"""Answer the commands that need a running surface. Until then they wait in the inbox, which survives a crash."""

from collections.abc import Sequence

from keryx.core.accounts.views import list_platforms
from keryx.core.context.rules.compaction import KEPT_TURNS, WINDOW_TOKENS, plan_by_hand
from keryx.core.context.views.prompt_facts import pinned_seqs
from keryx.core.context.views.usage import show_context_usage
from keryx.core.conversations.rules.command import ParsedCommand
from keryx.core.conversations.rules.message import text_of
from keryx.core.conversations.views.transcript import model_messages
from keryx.core.search.views.search import SearchResult, search
from keryx.core.turns.transactions.inbox_items import answer_command
from keryx.core.turns.views.turn import WaitingCommand, audience_at, list_commands
from keryx.core.upkeep.views.nodes import may_see_problems
from keryx.gateway.runtime.log import log_ids, log_of
from keryx.gateway.runtime.runtime import Runtime
from keryx.store.database import ReadTx

HITS_SHOWN = 8
SESSIONS_SHOWN = 5
TOO_SHORT = f"There is too little to summarise: the last {KEPT_TURNS} turns stay as they are."
PREVIEW = (
    "{count:,} messages, about {before:,} tokens (numbers {first} to {last}), would become a summary of at most about "
    "{after:,} tokens. Later messages stay as they are. Say /compress to do it."
)
AROUND_PINNED = " Pinned messages between them stay too."

_log = log_of("commands")


async def answer_waiting(runtime: Runtime) -> int:
    """Answer every waiting command; return how many there were."""
    waiting = await runtime.database.read(list_commands)
    for command in waiting:
        with log_ids(session=command.session_id, inbox=command.id):
            await _answer(runtime, command)
    return len(waiting)


async def _answer(runtime: Runtime, command: WaitingCommand) -> None:
    try:
        reply = await runtime.database.read(lambda tx: _reply(tx, command, runtime))
    except Exception as error:  # noqa: BLE001 - a command that fails must not delay the others
        _log.failed("a command failed", error=error)
        reply = "The command failed; the log says why."
    await runtime.write_with_retry(
        lambda tx: answer_command(tx, command.id, reply=reply, ids=runtime.ids), what="a command"
    )


def _reply(tx: ReadTx, command: WaitingCommand, runtime: Runtime) -> str:
    parsed = runtime.commands.parse(text_of(command.parts))
    assert isinstance(parsed, ParsedCommand), "only a parsed command waits as a command"
    person_id = command.person_id
    assert person_id is not None, "every command has an author"
    match parsed.name:
        case "search":
            return _search(tx, command, parsed.arguments, person_id=person_id)
        case "platforms":
            return _platforms(tx, command, runtime.troubles(), person_id=person_id)
        case _:
            return _preview(tx, command.session_id, person_id=person_id)


def _platforms(tx: ReadTx, command: WaitingCommand, troubles: Sequence[str], *, person_id: int) -> str:
    audience_id = audience_at(tx, command.source, command.session_id)
    may_see = may_see_problems(tx, person_id=person_id, audience_id=audience_id)
    return "\n".join(["Connected now:", *list_platforms(tx), *(troubles if may_see else ())])


def _search(tx: ReadTx, command: WaitingCommand, text: str, *, person_id: int) -> str:
    audience_id = audience_at(tx, command.source, command.session_id)
    return _show_hits(
        search(tx, text, person_id=person_id, limit=HITS_SHOWN, neighbours=0, audience_id=audience_id)
    )


def _preview(tx: ReadTx, session_id: str, *, person_id: int) -> str:
    """Describe what ``/compress`` would do."""
    in_context = show_context_usage(tx, session_id, person_id=person_id)
    items = model_messages(tx, session_id, person_id=person_id)
    pinned = pinned_seqs(tx, session_id)
    plans = plan_by_hand(
        items, window=WINDOW_TOKENS if in_context is None else in_context.window, pinned=pinned
    )
    if not plans:
        return TOO_SHORT
    preview = PREVIEW.format(
        count=sum(plan.message_count for plan in plans),
        before=sum(plan.tokens for plan in plans),
        first=plans[0].first_seq,
        last=plans[-1].last_seq,
        after=sum(plan.summary_tokens for plan in plans),
    )
    return f"{preview}{AROUND_PINNED}" if len(plans) > 1 else preview


def _show_hits(found: SearchResult) -> str:
    """Return the results of a search as a text for a chat."""
    if not found.sessions:
        return "\n".join(["Nothing found.", *found.nothing_because, *found.notes])
    lines: list[str] = []
    for session in found.sessions[:SESSIONS_SHOWN]:
        lines.append(f"{session.title or session.session_id} ({session.session_id})")
        lines += [f"  {hit.role or 'title'}: {hit.snippet.text}" for hit in session.hits]
    more = ["There is more; search with more words."] if found.next else []
    return "\n".join([*lines, *more, *found.notes])
