"""The facts of the feed that the index does not cover yet, and the documents of messages and sessions.

Index and scan of new rows use the same documents.
"""

from functools import partial
from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.event import Position
from keryx.core.conversations.rules.message import Message, decode_parts, search_text, stored_search_text
from keryx.core.media import tables as blobs
from keryx.core.search.rules.build_segment import IndexDocument
from keryx.core.search.rules.filters import features
from keryx.core.search.rules.scope_terms import author_words, document_scopes
from keryx.core.search.views.searched_rows import SessionRow
from keryx.store.database import ReadTx


class NewFact(NamedTuple):
    """A fact of the feed. The fields from ``message_id`` on are empty unless a message is its subject and exists."""

    xid: int
    id: int
    kind: str
    session_id: str | None
    message_id: int | None
    role: str
    body: str
    author: str | None
    author_id: int | None
    created_at: Micros
    audience_id: int
    platform: str


def list_new(tx: ReadTx, *, after: Position, limit: int) -> list[NewFact]:
    """Return the facts after a position in order, but none of a transaction that still runs, or later."""
    return tx.all(NewFact, "facts_to_index.list", xid=after.xid, id=after.id, limit=limit)


def list_newest(tx: ReadTx, *, after: Position, limit: int) -> list[tuple[str, str | None, int | None]]:
    """Return (kind, session, subject) of the newest facts after a position, newest first."""
    return [
        tuple(row) for row in tx.rows("facts_to_index.list_newest", xid=after.xid, id=after.id, limit=limit)
    ]


def count_new(tx: ReadTx, *, after: Position, limit: int) -> int:
    """Count the facts after a position, up to ``limit``."""
    ((count,),) = tx.rows("facts_to_index.count", xid=after.xid, id=after.id, limit=limit)
    return int(count)


def message_text(tx: ReadTx, message: Message) -> str:
    """Return the text in which a search looks: the text of the message's document, without making the document."""
    read_kept = partial(blobs.find_result, tx, session_id=message.session_id)
    return stored_search_text(message.body, read_kept)


def message_document(
    tx: ReadTx, message: Message | NewFact, *, id_: int, session_id: str, session: SessionRow | NewFact
) -> IndexDocument:
    """Return the document of a message; ``session`` has the audience and the platform of its session."""
    parts = decode_parts(message.body)
    return IndexDocument(
        id=id_,
        created_at=message.created_at,
        text=search_text(parts, partial(blobs.find_result, tx, session_id=session_id)),
        scopes=document_scopes(
            session_id=session_id,
            audience_id=session.audience_id,
            platform=session.platform,
            role=message.role,
            author_words=author_words(message.author, message.author_id),
            features=features(parts),
        ),
    )


def card_document(session: SessionRow, *, card_id: int) -> IndexDocument:
    """Return the document of a session card."""
    return IndexDocument(
        id=-card_id,
        created_at=session.started_at,
        text=session.card_text,
        scopes=document_scopes(
            session_id=session.id, audience_id=session.audience_id, platform=session.platform
        ),
    )
