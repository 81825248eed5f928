"""What the index and the scan of new rows see of a message or a session: the one place where documents are made."""

from functools import partial

from keryx.core.conversations.rules.message import decode_parts, search_text, stored_search_text
from keryx.core.media import tables as blobs
from keryx.core.search.rules.build_segment import IndexDocument
from keryx.core.search.rules.filters import features
from keryx.core.search.rules.scope_terms import Author, document_scopes
from keryx.core.search.views.facts_to_index import NewFact
from keryx.core.search.views.searched_messages import MessageRow
from keryx.core.search.views.searched_sessions import SessionRow
from keryx.store.database import ReadTx


def message_text(tx: ReadTx, message: MessageRow) -> str:
    """Return the text in which a search looks: the text of the message's document, without making the document."""
    read_kept = partial(blobs.find_result, tx, session_id=message.session_id)
    return stored_search_text(message.parts, read_kept)


def message_document(
    tx: ReadTx, message: MessageRow | NewFact, *, id_: int, session_id: str, session: SessionRow | NewFact
) -> IndexDocument:
    """Return the document of a message; ``session`` has the audience and the platform of its session."""
    parts = decode_parts(message.parts)
    return IndexDocument(
        id=id_,
        created_at=message.created_at,
        text=search_text(parts, partial(blobs.find_result, tx, session_id=session_id)),
        scopes=document_scopes(
            session_id=session_id,
            audience_id=session.audience_id,
            platform=session.platform,
            role=message.role,
            author=Author(message.author, message.author_id),
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
