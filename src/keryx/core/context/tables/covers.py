"""Summaries that stand for ranges of messages: added, listed, and dropped again."""

from dataclasses import asdict

from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.archive import CoverLine
from keryx.store.codec import clean_columns, clean_text
from keryx.store.database import ReadTx, Tx

_COLUMNS = (
    "session_id",
    "no",
    "branch_no",
    "first_seq",
    "last_seq",
    "summary",
    "focus",
    "tokens_before",
    "tokens_after",
    "created_at",
)


def list_covers(tx: ReadTx, session_id: str) -> list[Cover]:
    """Return the summaries of a session that still stand, in order of their ranges."""
    rows = tx.rows("covers.list_standing", session_id=session_id)
    return [Cover(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]


def add_cover(tx: Tx, cover: Cover) -> int:
    """Store a summary under the next number of its session, and return that; its own number and time are not used."""
    number: int = tx.value(
        "covers.add",
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
    return number


def add_imported(tx: Tx, session_id: str, line: CoverLine) -> None:
    """Add a summary that was written elsewhere, with its number and times."""
    tx.run("covers.add_imported", session_id=session_id, **clean_columns(asdict(line)))


def drop_cover(tx: Tx, *, session_id: str, no: int) -> bool:
    """Let the originals stand for themselves again; say whether the summary still stood."""
    return tx.run("covers.drop", session_id=session_id, no=no) == 1


def drop_of_session(tx: Tx, session_id: str) -> None:
    """Delete the session's summaries."""
    tx.run("covers.drop_of_session", session_id=session_id)
