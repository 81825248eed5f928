"""Whether the index says what the messages say: it is read whole and compared with one built from the rows.

For ``doctor`` and for tests; it costs as much as building the index. Cards are left out, because an old one may wait
in its segment until it is merged away, and is judged by the session's row whenever it is proposed.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from keryx.domain.event import Position
from keryx.domain.message import decode_parts, search_text
from keryx.domain.postings import SCOPE, Block, Piece
from keryx.domain.search_match import features
from keryx.domain.segment import (
    SESSION_SCOPE,
    Author,
    Document,
    build_segment,
    document_scopes,
    scope_docs,
    session_mark,
)
from keryx.store.database import ReadTx
from keryx.store.tables import blobs, search
from keryx.store.tables.search import MessageRow, SessionRow

PROBLEMS_MAX: Final = 20
PAGE: Final = 1_000

Said = dict[str, dict[int, tuple[int, bytes]]]
"""Of each term and message: how often and where it stands."""


def verify_index(tx: ReadTx) -> tuple[str, ...]:
    """Return what is wrong with the index, in sentences; nothing for an index that is right."""
    return tuple(islice(_problems(tx), PROBLEMS_MAX))


def _problems(tx: ReadTx) -> Iterator[str]:
    position = search.covered(tx)
    if position is None:
        yield "The index has another format than this code; it is thrown away and built anew."
        return
    gone = set(search.list_purges(tx, limit=1 << 30))
    indexed: set[int] = set()
    for segment in search.list_segments(tx):
        columns = [chunk.columns() for chunk in search.list_columns(tx, segment.segment_id)]
        ids = [each for part in columns for each in part.ids]
        times = [each for part in columns for each in part.times]
        twice = indexed.intersection(each for each in ids if each > 0)
        if twice:
            yield f"Message {min(twice)} is in segment {segment.segment_id} and in another one."
        indexed.update(ids)
        keys = list(zip(times, ids, strict=True))
        if len(ids) != segment.doc_count or keys != sorted(keys):
            yield f"Segment {segment.segment_id} does not have its {segment.doc_count} documents in order."
        elif (times[0], times[-1]) != (segment.first_at, segment.last_at):
            yield f"Segment {segment.segment_id} is not of the time it says."
        yield from _compare(tx, segment.segment_id, ids, has_gone=bool(gone))
    yield from _missing(tx, position, indexed)


def _missing(tx: ReadTx, position: Position, indexed: set[int]) -> Iterator[str]:
    tail = search.list_tail(tx, after=position, limit=1 << 30)
    waiting = {subject for kind, _, subject in tail if kind == "message"}
    last = 0
    while page := search.list_message_ids(tx, after_id=last, limit=PAGE):
        last = page[-1]
        for each in page:
            if each not in indexed and each not in waiting:
                yield f"Message {each} is not in the index."


def _compare(tx: ReadTx, segment_id: int, ids: Sequence[int], *, has_gone: bool) -> Iterator[str]:
    """Yield where a segment says something else than its messages do."""
    found = _indexed(tx, segment_id, ids)
    documents = list(_documents(tx, ids))
    if len(documents) < sum(1 for each in ids if each > 0) and not has_gone:
        yield f"Segment {segment_id} holds messages that are no longer there."
    marks = b"".join(search.list_marks(tx, [segment_id]))
    if any(session_mark(term) not in marks for term in found if term.startswith(SESSION_SCOPE)):
        yield f"Segment {segment_id} does not say which sessions it holds."
    known = {document.id for document in documents}
    built = build_segment(documents, breathe=lambda: None)
    expected: Said = {}
    for term, docs, counts, positions in built.entries:
        expected[term] = _said(term, (docs, counts, positions), built.columns.ids)
    for term in sorted(found.keys() | expected.keys()):
        has = {id_: what for id_, what in found.get(term, {}).items() if id_ in known}
        if has != expected.get(term, {}):
            yield f"Segment {segment_id} is wrong about {term!r}."


def _indexed(tx: ReadTx, segment_id: int, ids: Sequence[int]) -> Said:
    found: Said = {}
    for packed in search.list_blocks(tx, segment_id, term="", limit=1 << 30):
        for term, piece in Block(packed.data).pieces(packed.positions):
            found[term] = _said(term, piece, ids)
    return found


def _said(term: str, piece: Piece, ids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
    docs, counts, positions = piece
    if term.startswith(SCOPE):
        return {ids[doc]: (0, b"") for doc in scope_docs(docs)}
    said: dict[int, tuple[int, bytes]] = {}
    begin = 0
    for doc, count in zip(docs, counts, strict=True):
        said[ids[doc]] = (count, positions[begin : begin + count])
        begin += count
    return said


def _documents(tx: ReadTx, ids: Sequence[int]) -> Iterator[Document]:
    for begin in range(0, len(ids), PAGE):
        messages = search.list_messages(tx, [each for each in ids[begin : begin + PAGE] if each > 0])
        sessions = search.list_sessions(tx, {message.session_id for message in messages.values()})
        yield from (_document(tx, message, sessions[message.session_id]) for message in messages.values())


def _document(tx: ReadTx, message: MessageRow, session: SessionRow) -> Document:
    parts = decode_parts(message.parts)
    return Document(
        id=message.id,
        created_at=message.created_at,
        text=search_text(parts, partial(blobs.find_result, tx, session_id=session.id)),
        scopes=document_scopes(
            session_id=session.id,
            audience_id=session.audience_id,
            platform=session.platform,
            role=message.role,
            author=Author(message.author, message.author_id),
            features=features(parts),
        ),
    )
