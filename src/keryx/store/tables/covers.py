"""Summaries that stand for ranges of messages: added, and dropped again."""

from keryx.domain.cover import Cover
from keryx.store.codec import clean_text
from keryx.store.database import Tx


def add_cover(tx: Tx, cover: Cover) -> int:
    """Store a summary under the next number of its session, and return that; its own number and time are not used."""
    row = tx.row(
        "branches.add_cover",
        session_id=cover.session_id,
        branch_no=cover.branch_no,
        first_seq=cover.first_seq,
        last_seq=cover.last_seq,
        summary=clean_text(cover.summary),
        focus=clean_text(cover.focus),
        tokens_before=cover.tokens_before,
        tokens_after=cover.tokens_after,
        model=clean_text(cover.cost.model),
        input_tokens=cover.cost.input_tokens,
        cached_tokens=cover.cost.cached_tokens,
        output_tokens=cover.cost.output_tokens,
        cost_micros=cover.cost.cost_micros,
    )
    assert row is not None
    number: int = row[0]
    return number


def drop_cover(tx: Tx, *, session_id: str, no: int) -> bool:
    """Let the originals stand for themselves again; say whether the summary still stood."""
    return tx.run("branches.drop_cover", session_id=session_id, no=no) == 1
