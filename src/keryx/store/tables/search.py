"""The search index's tables: immutable segments of packed postings, and how far they go.

Rows in, rows out. What the bytes mean is for ``domain.postings``, which rows to write for ``transactions`` to decide.
"""

from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from keryx.clock import Micros
from keryx.domain.branch import Segment
from keryx.domain.event import START, Position
from keryx.domain.postings import CHUNK, FORMAT, Chunk, Columns, Packed, pack_columns
from keryx.store.codec import to_json
from keryx.store.database import ReadTx, Row, Tx


class SegmentRow(NamedTuple):
    """A segment that queries read. ``born`` orders segments as their documents were indexed."""

    segment_id: int
    born: int
    doc_count: int
    first_at: Micros
    last_at: Micros


class NewFact(NamedTuple):
    """A fact of the feed; from ``message_id`` on empty where it is about no message that still exists."""

    xid: int
    id: int
    kind: str
    session_id: str | None
    message_id: int | None
    role: str
    parts: str
    author: str | None
    author_id: int | None
    created_at: Micros
    audience_id: int
    platform: str


class MessageRow(NamedTuple):
    """As much of a message as a search needs."""

    id: int
    session_id: str
    branch_no: int
    seq: int
    role: str
    parts: str
    author: str | None
    author_id: int | None
    created_at: Micros
    turn_id: int | None


class SessionRow(NamedTuple):
    """As much of a session as a search needs."""

    id: str
    audience_id: int
    platform: str
    state: str
    title: str | None
    title_by: str | None
    display_name: str | None
    started_at: Micros
    active_branch_no: int
    pinned_at: Micros | None
    archived_at: Micros | None
    deleted_at: Micros | None
    project: str | None
    tags: tuple[str, ...]

    @property
    def card(self) -> str:
        """What can be found of the session itself. A title cut from a message is found in that message."""
        title = None if self.title_by == "text" else self.title
        return "\n".join([each for each in (title, self.display_name, *self.tags, self.id) if each])


class FoundBlock(NamedTuple):
    """A block that may hold a term."""

    segment_id: int
    term: str
    block_id: int
    data: bytes


def covered(tx: ReadTx) -> Position | None:
    """Return the position up to which the index covers the feed; None for an index of another format."""
    row = tx.row("search.state")
    if row is None:
        return START
    return Position(row[1], row[2]) if row[0] == FORMAT else None


def lock(tx: Tx) -> Position | None:
    """Like ``covered``, and keep other indexers out until the transaction ends; begins an index where none is."""
    tx.run("search.begin", format=FORMAT)
    row = tx.row("search.lock")
    assert row is not None
    return Position(row[1], row[2]) if row[0] == FORMAT else None


def advance(tx: Tx, position: Position) -> None:
    """Note that everything up to ``position`` is indexed."""
    tx.run("search.advance", xid=position.xid, id=position.id)


def list_new(tx: ReadTx, *, after: Position, limit: int) -> list[NewFact]:
    """Return the facts after a position in order; never passes a transaction that still runs."""
    rows = tx.rows("search.list_new", xid=after.xid, id=after.id, limit=limit)
    return [NewFact(*row) for row in rows]


def list_tail(tx: ReadTx, *, after: Position, limit: int) -> list[tuple[str, str | None, int | None]]:
    """Return (kind, session, subject) of the newest facts after a position, newest first."""
    return [tuple(row) for row in tx.rows("search.list_tail", xid=after.xid, id=after.id, limit=limit)]


def count_new(tx: ReadTx, *, after: Position, limit: int) -> int:
    """Count the facts after a position, up to ``limit``."""
    (count,) = _only(tx.row("search.count_new", xid=after.xid, id=after.id, limit=limit))
    return int(count)


def take_segment(tx: Tx) -> int:
    """Return the number of a new segment."""
    (segment_id,) = _only(tx.row("search.take_segment"))
    return int(segment_id)


def ensure_card(tx: Tx, session_id: str) -> int:
    """Return the number of a session's card, giving it one if it has none."""
    row = tx.row("search.find_card", session_id=session_id)
    if row is None:
        row = _only(tx.row("search.take_card"))
        tx.run("search.add_card", card_id=row[0], session_id=session_id)
    return int(row[0])


def find_cards(tx: ReadTx, card_ids: Collection[int]) -> dict[int, str]:
    """Return the sessions of some cards."""
    return {row[0]: row[1] for row in _rows_of(tx, "search.find_cards", card_ids)}


def list_sessions(tx: ReadTx, session_ids: Collection[str]) -> dict[str, SessionRow]:
    """Return some sessions; those that were purged are missing."""
    return {row[0]: _session(row) for row in _rows_of(tx, "search.list_sessions", session_ids)}


def list_messages(tx: ReadTx, message_ids: Collection[int]) -> dict[int, MessageRow]:
    """Return some messages; those that were purged are missing."""
    return {row[0]: MessageRow(*row) for row in _rows_of(tx, "search.list_messages", message_ids)}


def list_message_ids(tx: ReadTx, *, after_id: int, limit: int) -> list[int]:
    """Return the ids of messages after one, rising."""
    return [row[0] for row in tx.rows("search.list_message_ids", after_id=after_id, limit=limit)]


def list_near(tx: ReadTx, places: Sequence[tuple[str, int, int]], *, reach: int) -> list[Row]:
    """Return (session, number, role, parts) up to ``reach`` numbers before and after each (session, branch, number)."""
    return tx.rows("search.list_near", places=to_json(places), reach=reach) if places and reach else []


def list_last(tx: ReadTx, segment: Segment, *, last_seq: int, limit: int) -> list[MessageRow]:
    """Return the newest messages of a part of a path up to a number, newest first."""
    rows = tx.rows(
        "search.list_last",
        session_id=segment.session_id,
        branch_no=segment.branch_no,
        first_seq=segment.first_seq,
        last_seq=last_seq,
        limit=limit,
    )
    return [MessageRow(*row) for row in rows]


def list_first(
    tx: ReadTx, segment: Segment, *, first_seq: int, last_seq: int, limit: int
) -> list[MessageRow]:
    """Return the oldest messages of a part of a path from a number on, oldest first."""
    rows = tx.rows(
        "search.list_first",
        session_id=segment.session_id,
        branch_no=segment.branch_no,
        first_seq=first_seq,
        last_seq=last_seq,
        limit=limit,
    )
    return [MessageRow(*row) for row in rows]


def count_audiences(tx: ReadTx, *, limit: int) -> int:
    """Count all audiences, up to ``limit``."""
    (count,) = _only(tx.row("search.count_audiences", limit=limit))
    return int(count)


def list_tags(tx: ReadTx) -> list[str]:
    """Return every tag there is."""
    return [tag for (tag,) in tx.rows("search.list_tags")]


def list_tagged(tx: ReadTx, tags: Collection[str], *, limit: int) -> list[str]:
    """Return sessions with one of ``tags``."""
    return [row[0] for row in tx.rows("search.list_tagged", tags=to_json(list(tags)), limit=limit)]


def list_projects(tx: ReadTx) -> dict[int, str]:
    """Return every project's name."""
    return dict(tx.rows("search.list_projects"))


def list_in_projects(tx: ReadTx, project_ids: Collection[int], *, limit: int) -> list[str]:
    """Return sessions of some projects."""
    return [row[0] for row in tx.rows("search.list_in_projects", ids=to_json(list(project_ids)), limit=limit)]


def list_in_state(tx: ReadTx, state: str, *, limit: int) -> list[str]:
    """Return sessions that are ``pinned``, ``archived`` or ``deleted``."""
    return [row[0] for row in tx.rows("search.list_in_state", state=state, limit=limit)]


def list_segments(tx: ReadTx) -> list[SegmentRow]:
    """Return the segments that queries read, the one with the newest document first."""
    return [SegmentRow(*row) for row in tx.rows("search.list_segments")]


def list_marked(tx: ReadTx, mark: bytes) -> set[int]:
    """Return the segments that may hold the session of this mark."""
    return {row[0] for row in tx.rows("search.list_marked", mark=mark)}


def list_marks(tx: ReadTx, segment_ids: Collection[int]) -> list[bytes]:
    """Return the marks of the sessions in some segments."""
    return [row[0] for row in _rows_of(tx, "search.list_marks", segment_ids)]


def add_segment(tx: Tx, segment: SegmentRow, columns: Columns, *, marks: bytes, finished: bool) -> None:
    """Store a segment and its columns; its blocks come with ``add_blocks``."""
    tx.run(
        "search.add_segment",
        **segment._asdict(),
        marks=marks,
        merged_up_to=None if finished else "",
        finished_at=tx.now if finished else None,
    )
    chunks = []
    for begin in range(0, segment.doc_count, CHUNK):
        part = Columns(*(column[begin : begin + CHUNK] for column in columns))
        chunks.append({"segment_id": segment.segment_id, "chunk": begin // CHUNK, "data": pack_columns(part)})
    tx.run_many("search.add_docs", chunks)


def add_blocks(tx: Tx, segment_id: int, blocks: Iterable[Packed]) -> None:
    """Store blocks of a segment."""
    tx.run_many("search.add_block", [{"segment_id": segment_id, **block._asdict()} for block in blocks])


def list_columns(tx: ReadTx, segment_id: int) -> list[Chunk]:
    """Return a segment's columns, chunk by chunk."""
    return [Chunk(row[0]) for row in tx.rows("search.list_docs", segment_id=segment_id)]


def find_columns(tx: ReadTx, segment_id: int, chunks: Collection[int]) -> dict[int, Chunk]:
    """Return some chunks of a segment's columns by their numbers."""
    rows = tx.rows("search.find_docs", segment_id=segment_id, chunks=to_json(list(chunks)))
    return {row[0]: Chunk(row[1]) for row in rows}


def list_columns_of(tx: ReadTx, segment_ids: Collection[int]) -> list[tuple[int, int, Chunk]]:
    """Return (segment, number, chunk) of all columns of some segments."""
    return [(row[0], row[1], Chunk(row[2])) for row in _rows_of(tx, "search.list_docs_of", segment_ids)]


def find_blocks(tx: ReadTx, segment_ids: Sequence[int], terms: Sequence[str]) -> list[FoundBlock]:
    """Return for each segment and term the block that holds the term, if any does."""
    rows = tx.rows("search.find_blocks", segments=to_json(segment_ids), terms=to_json(terms))
    return list(map(FoundBlock._make, rows))


def find_blocks_between(
    tx: ReadTx, segment_ids: Sequence[int], *, term: str, term_end: str
) -> list[FoundBlock]:
    """Return for each segment all blocks that may hold terms from ``term`` up to, but without, ``term_end``."""
    rows = tx.rows("search.find_blocks_between", segments=to_json(segment_ids), term=term, term_end=term_end)
    return [FoundBlock(row[0], term, row[1], row[2]) for row in rows]


def find_positions(tx: ReadTx, block_ids: Collection[int]) -> dict[int, bytes]:
    """Return the positions of some blocks."""
    return {row[0]: row[1] for row in _rows_of(tx, "search.find_positions", block_ids)}


def list_blocks(tx: ReadTx, segment_id: int, *, term: str, limit: int) -> list[Packed]:
    """Return blocks of a segment in order, from the one that holds ``term`` on."""
    return [
        Packed(*row) for row in tx.rows("search.list_blocks", segment_id=segment_id, term=term, limit=limit)
    ]


def add_merge(tx: Tx, *, target_id: int, source_id: int, renumbering: "array[int]") -> None:
    """Note a source of the unfinished segment and the new numbers of its documents."""
    tx.run("search.add_merge", target_id=target_id, source_id=source_id, renumbering=renumbering.tobytes())


def find_merge(tx: ReadTx) -> tuple[int, str] | None:
    """Return the unfinished segment and the term its merge goes on from, or None."""
    row = tx.row("search.find_merge")
    return None if row is None else (row[0], row[1])


def list_merge(tx: ReadTx, target_id: int) -> list[tuple[int, "array[int]"]]:
    """Return the sources of a merge with the new numbers of their documents, oldest first."""
    found = []
    for source_id, renumbering in tx.rows("search.list_merge", target_id=target_id):
        numbers = array("H")
        numbers.frombytes(renumbering)
        found.append((source_id, numbers))
    return found


def continue_merge(tx: Tx, target_id: int, *, merged_up_to: str) -> None:
    """Note that all terms before ``merged_up_to`` are written."""
    tx.run("search.continue_merge", segment_id=target_id, merged_up_to=merged_up_to)


def finish_merge(tx: Tx, target_id: int, *, sources: Iterable[int]) -> None:
    """Let the target stand in place of its sources."""
    tx.run("search.finish_segment", segment_id=target_id)
    tx.run("search.drop_merge", target_id=target_id)
    for source_id in sources:
        drop_segment(tx, source_id)


def drop_segment(tx: Tx, segment_id: int) -> None:
    """Drop a segment with all it holds."""
    for name in ("search.drop_segment", "search.drop_docs", "search.drop_blocks"):
        tx.run(name, segment_id=segment_id)


def add_purges(tx: Tx) -> None:
    """Note that the words of every session that is no longer in the store must leave the index."""
    tx.run("search.add_purges_of_gone")


def list_purges(tx: ReadTx, *, limit: int) -> list[str]:
    """Return sessions whose words must leave the index."""
    return [row[0] for row in tx.rows("search.list_purges", limit=limit)]


def finish_purge(tx: Tx, session_id: str) -> None:
    """Note that no word of the session is left."""
    tx.run("search.finish_purge", session_id=session_id)
    tx.run("search.drop_card", session_id=session_id)


def clear(tx: Tx) -> None:
    """Empty the index; it covers nothing then."""
    tx.run("search.clear_state")
    tx.run("search.clear_segments")
    tx.run("search.clear_docs")
    tx.run("search.clear_blocks")
    tx.run("search.clear_merges")
    tx.run("search.clear_cards")
    tx.run("search.clear_purges")


def _rows_of(tx: ReadTx, name: str, ids: Collection[int] | Collection[str]) -> list[Row]:
    return tx.rows(name, ids=to_json(list(ids))) if ids else []


def _session(row: Row) -> SessionRow:
    *columns, tags = row
    return SessionRow._make([*columns, () if tags is None else tuple(tags.split("\n"))])


def _only(row: Row | None) -> Row:
    assert row is not None
    return row
