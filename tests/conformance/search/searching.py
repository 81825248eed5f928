"""Searching and indexing, for the conformance tests of search."""

from typing import Any

from keryx.core.conversations.rules.message import NewMessage, Part, Role, TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.search.rules.blocks import Block
from keryx.core.search.tables.blocks import list_blocks
from keryx.core.search.tables.segments import list_segments
from keryx.core.search.transactions.index_messages import IndexStep, index_step
from keryx.core.search.views.search import Hit, SearchResult, search
from keryx.core.search.views.verify_index import verify_index
from keryx.store.database import Tx
from tests.conformance.talk import Talk


async def say(
    talk: Talk,
    session_id: SessionId,
    text: str | tuple[Part, ...],
    *,
    role: Role = "user",
    at: int | None = None,
    author: str | None = None,
) -> int:
    parts = (TextPart(text=text),) if isinstance(text, str) else text
    message = NewMessage(role=role, parts=parts, created_at=at, author=author)
    appended = await talk.database.write(
        lambda tx: append_message(tx, session_id, message, person_id=talk.owner.id)
    )
    return appended.message_id


async def index(talk: Talk, *, rows_max: int = 500) -> list[IndexStep]:
    """Index everything, and run the merges that are due."""
    steps: list[IndexStep] = []
    while not steps or steps[-1].more:
        steps.append(await talk.database.write_index(lambda tx: index_step(tx, rows_max=rows_max)))
    return steps


async def find(talk: Talk, text: str, *, person_id: int | None = None, **options: Any) -> SearchResult:
    who = talk.owner.id if person_id is None else person_id
    return await talk.database.read(lambda tx: search(tx, text, person_id=who, **options))


async def texts(talk: Talk, text: str, **options: Any) -> list[str]:
    return [hit.snippet.text for hit in hits(await find(talk, text, **options))]


async def problems(talk: Talk) -> tuple[str, ...]:
    return await talk.database.read(verify_index)


def hits(result: SearchResult) -> list[Hit]:
    return [hit for session in result.sessions for hit in session.hits]


def ids_of(result: SearchResult) -> list[int]:
    """Return the messages found, newest first; the hits themselves are grouped by session."""
    found = sorted(hits(result), key=lambda hit: (hit.created_at, hit.message_id), reverse=True)
    return [hit.message_id for hit in found if hit.seq]


async def segment_count(talk: Talk) -> int:
    return len(await talk.database.read(list_segments))


async def terms(talk: Talk) -> set[str]:
    """Return every term in the index."""

    def read(tx: Tx) -> set[str]:
        return {
            term
            for segment in list_segments(tx)
            for packed in list_blocks(tx, segment.segment_id, term="", limit=10_000)
            for term in Block(packed.data).terms
        }

    return await talk.database.read(read)  # type: ignore[arg-type]
