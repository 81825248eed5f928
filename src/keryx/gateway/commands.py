"""Commands that only a running surface can answer: they wait in the inbox until one does, also over a crash."""

from keryx.domain.command import ParsedCommand, parse_command
from keryx.domain.message import text_of
from keryx.gateway.desk import Desk
from keryx.gateway.log import concerning, log_of
from keryx.store.database import ReadTx
from keryx.transactions.answer_command import answer_command
from keryx.views.nodes import list_platforms
from keryx.views.search import SearchResult, search
from keryx.views.turn import WaitingCommand, audience_at, list_commands

HITS_SHOWN = 8
SESSIONS_SHOWN = 5
NOT_YET = "/{name} comes with the model agent; there is none yet."

_log = log_of("commands")


async def answer_waiting(desk: Desk) -> int:
    """Answer every command that waits; return how many there were."""
    waiting = await desk.database.read(list_commands)
    for command in waiting:
        with concerning(session=command.session_id, inbox=command.id):
            await _answer(desk, command)
    return len(waiting)


async def _answer(desk: Desk, command: WaitingCommand) -> None:
    try:
        reply = await desk.database.read(lambda tx: _reply(tx, command))
    except Exception as error:  # noqa: BLE001 - one that cannot be answered must not hold up the others
        _log.failed("a command failed", error=error)
        reply = "That did not work; the log says why."
    await desk.insist(lambda tx: answer_command(tx, command.id, reply=reply, ids=desk.ids), what="a command")


def _reply(tx: ReadTx, command: WaitingCommand) -> str:
    parsed = parse_command(text_of(command.parts))
    assert isinstance(parsed, ParsedCommand), "only what was read as a command waits as one"
    match parsed.name:
        case "search":
            return _search(tx, command, parsed.arguments)
        case "platforms":
            return "\n".join(["Connected now:", *list_platforms(tx)])
        case name:
            return NOT_YET.format(name=name)


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
