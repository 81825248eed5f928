"""Covers: summaries that replace ranges of messages when a model reads them."""

from dataclasses import asdict
from typing import Final

from keryx.core.context.rules.cover import Cover, SummaryCost
from keryx.core.conversations.rules.archive import CoverLine
from keryx.store.codec import clean_columns
from keryx.store.database import ReadTx, Tx

NO_COST: Final = SummaryCost()


def list_covers(tx: ReadTx, session_id: str) -> list[Cover]:
    """Return the covers of a session that were not dropped, in the order of their ranges."""
    return tx.all(Cover, "covers.list_of_session", session_id=session_id)


def add_cover(tx: Tx, cover: Cover, cost: SummaryCost = NO_COST) -> int:
    """Add a cover and return its number. The store sets the number and the time."""
    number: int = tx.value("covers.add", **clean_columns(asdict(cover) | asdict(cost)))
    return number


def add_imported(tx: Tx, session_id: str, line: CoverLine) -> None:
    """Add a cover of an imported session, with its number and times."""
    tx.run("covers.add_imported", session_id=session_id, **clean_columns(asdict(line)))


def drop_cover(tx: Tx, *, session_id: str, no: int) -> bool:
    """Drop a cover, so that a model reads the messages again. Return whether the cover applied until now."""
    return tx.run("covers.drop", session_id=session_id, no=no) == 1


def drop_of_session(tx: Tx, session_id: str) -> None:
    """Delete the covers of the session."""
    tx.run("covers.drop_of_session", session_id=session_id)
