"""The blocks of segments: consecutive terms with their postings, under the first of the terms."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from keryx.core.search.rules.blocks import PackedBlock
from keryx.store.codec import to_json
from keryx.store.database import ReadTx, Tx


class FoundBlock(NamedTuple):
    """A block that can hold a term."""

    segment_id: int
    term: str
    block_id: int
    data: bytes


def add_blocks(tx: Tx, segment_id: int, blocks: Iterable[PackedBlock]) -> None:
    """Store blocks of a segment."""
    tx.run_many("search_blocks.add", [{"segment_id": segment_id, **block._asdict()} for block in blocks])


def find_blocks(tx: ReadTx, segment_ids: Sequence[int], terms: Sequence[str]) -> list[FoundBlock]:
    """Return, for each segment and term, the block that holds the term, if there is one."""
    return tx.all(FoundBlock, "search_blocks.find", segments=to_json(segment_ids), terms=to_json(terms))


def find_blocks_between(
    tx: ReadTx, segment_ids: Sequence[int], *, term: str, term_end: str
) -> list[FoundBlock]:
    """Return, for each segment, all blocks that can hold terms from ``term`` up to, but without, ``term_end``."""
    rows = tx.rows("search_blocks.find_between", segments=to_json(segment_ids), term=term, term_end=term_end)
    return [FoundBlock(segment_id, term, block_id, data) for segment_id, block_id, data in rows]


def find_positions(tx: ReadTx, block_ids: Collection[int]) -> dict[int, bytes]:
    """Return the positions of some blocks."""
    return dict(tx.rows("search_blocks.find_positions", ids=to_json(list(block_ids)))) if block_ids else {}


def list_blocks(tx: ReadTx, segment_id: int, *, term: str, limit: int) -> list[PackedBlock]:
    """Return blocks of a segment in order, beginning with the block that can hold ``term``."""
    return tx.all(PackedBlock, "search_blocks.list", segment_id=segment_id, term=term, limit=limit)
