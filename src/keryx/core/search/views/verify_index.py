"""Whether the index agrees with the messages: the whole index is compared with one built from the rows.

For ``doctor`` and for tests. The check costs as much as building the index. Session cards are left out: an old card may
stay in its segment until a merge, and is matched by the session's current row.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from keryx.core.conversations.rules.event import Position
from keryx.core.search.rules.blocks import Block, PostingList
from keryx.core.search.rules.build_segment import IndexDocument, build_segment
from keryx.core.search.rules.columns import join_columns
from keryx.core.search.rules.index_format import SCOPE
from keryx.core.search.rules.scope_terms import SESSION_SCOPE, scope_docs, session_mark
from keryx.core.search.tables.blocks import list_blocks
from keryx.core.search.tables.index_state import find_position, list_purges
from keryx.core.search.tables.segments import list_chunks, list_marks, list_segments
from keryx.core.search.views.facts_to_index import list_newest, message_document
from keryx.core.search.views.searched_rows import list_message_ids, list_messages, list_sessions
from keryx.store.database import ReadTx

PROBLEMS_MAX: Final = 20
PAGE: Final = 1_000
ALL: Final = 1 << 30

_Occurrences: TypeAlias = dict[int, tuple[int, bytes]]
"""The count and the positions of a term in each message."""


def verify_index(tx: ReadTx) -> tuple[str, ...]:
    """Return what is wrong with the index, in sentences; nothing for a correct index."""
    return tuple(islice(_problems(tx), PROBLEMS_MAX))


def _problems(tx: ReadTx) -> Iterator[str]:
    position = find_position(tx)
    if position is None:
        yield "The index has another format than this code writes; it will be rebuilt."
        return
    has_purges = bool(list_purges(tx, limit=1))
    indexed: set[int] = set()
    for segment in list_segments(tx):
        ids, times, _ = join_columns(list_chunks(tx, segment.segment_id))
        repeated = indexed.intersection(each for each in ids if each > 0)
        if repeated:
            yield f"Message {min(repeated)} is in segment {segment.segment_id} and in another one."
        indexed.update(ids)
        keys = list(zip(times, ids, strict=True))
        if len(ids) != segment.doc_count or keys != sorted(keys):
            yield f"Segment {segment.segment_id} does not hold its {segment.doc_count} documents in order."
        elif (times[0], times[-1]) != (segment.first_at, segment.last_at):
            yield f"Segment {segment.segment_id} has documents of another time than its row says."
        yield from _compare(tx, segment.segment_id, ids, has_purges=has_purges)
    yield from _missing(tx, position, indexed)


def _missing(tx: ReadTx, position: Position, indexed: set[int]) -> Iterator[str]:
    """Yield the messages that are neither in the index nor waiting to be indexed."""
    waiting = {
        subject for kind, _, subject in list_newest(tx, after=position, limit=ALL) if kind == "message"
    }
    last = 0
    while page := list_message_ids(tx, after_id=last, limit=PAGE):
        last = page[-1]
        for each in page:
            if each not in indexed and each not in waiting:
                yield f"Message {each} is not in the index."


def _compare(tx: ReadTx, segment_id: int, ids: Sequence[int], *, has_purges: bool) -> Iterator[str]:
    found = _read_segment(tx, segment_id, ids)
    documents = list(_documents(tx, ids))
    if len(documents) < sum(1 for each in ids if each > 0) and not has_purges:
        yield f"Segment {segment_id} holds messages that no longer exist."
    marks = b"".join(list_marks(tx, [segment_id]))
    if any(session_mark(term) not in marks for term in found if term.startswith(SESSION_SCOPE)):
        yield f"Segment {segment_id} lacks the mark of a session that it holds."
    known = {document.id for document in documents}
    built = build_segment(documents, yield_control=lambda: None)
    expected: dict[str, _Occurrences] = {}
    for term, docs, counts, positions in built.entries:
        expected[term] = _occurrences(term, (docs, counts, positions), built.columns.ids)
    for term in sorted(found.keys() | expected.keys()):
        indexed = {id_: what for id_, what in found.get(term, {}).items() if id_ in known}
        if indexed != expected.get(term, {}):
            yield f"Segment {segment_id} has wrong postings for {term!r}."


def _read_segment(tx: ReadTx, segment_id: int, ids: Sequence[int]) -> dict[str, _Occurrences]:
    return {
        term: _occurrences(term, postings, ids)
        for packed in list_blocks(tx, segment_id, term="", limit=ALL)
        for term, postings in Block(packed.data).posting_lists(packed.positions)
    }


def _occurrences(term: str, postings: PostingList, ids: Sequence[int]) -> _Occurrences:
    docs, counts, positions = postings
    if term.startswith(SCOPE):
        return {ids[doc]: (0, b"") for doc in scope_docs(docs)}
    found: _Occurrences = {}
    begin = 0
    for doc, count in zip(docs, counts, strict=True):
        found[ids[doc]] = (count, positions[begin : begin + count])
        begin += count
    return found


def _documents(tx: ReadTx, ids: Sequence[int]) -> Iterator[IndexDocument]:
    for begin in range(0, len(ids), PAGE):
        messages = list_messages(tx, [each for each in ids[begin : begin + PAGE] if each > 0])
        sessions = list_sessions(tx, {message.session_id for message in messages.values()})
        for message in messages.values():
            session = sessions[message.session_id]
            yield message_document(tx, message, id_=message.id, session_id=session.id, session=session)
