"""Blobs: contents by their SHA-256, and who still needs them.

A session refers to its blobs as ``session_holder``; one without any reference is collected a day after it was last
brought.
"""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.media.rules import RESULT_TYPE, text_of_result
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


class Blob(NamedTuple):
    """A row of the table; ``data`` is None where the bytes lie beside the store."""

    hash: str
    media_type: str
    size_bytes: int
    data: bytes | None
    created_at: Micros


def session_holder(session_id: str) -> str:
    """Return the name under which a session refers to its blobs."""
    return f"session:{session_id}"


def add_blob(tx: Tx, *, hash: str, media_type: str, size_bytes: int, data: bytes | None) -> None:  # noqa: A002 - named as the column
    """Keep a content, or note that it was brought again."""
    tx.run("blobs.add", hash=hash, media_type=clean_text(media_type), size_bytes=size_bytes, data=data)


def find_blob(tx: ReadTx, hash: str) -> Blob | None:  # noqa: A002 - named as the column
    """Return a content by its hash, or None."""
    return tx.one(Blob, "blobs.find", hash=hash)


def find_held(tx: ReadTx, hash: str, *, holder: str) -> Blob | None:  # noqa: A002 - named as the column
    """Return a content that ``holder`` needs, or None."""
    return tx.one(Blob, "blobs.find_held", hash=hash, holder=holder)


def find_result(tx: ReadTx, digest: str, *, session_id: str) -> str | None:
    """Return the text of a long result that a session needs, or None."""
    found = find_held(tx, digest, holder=session_holder(session_id))
    if found is None or found.data is None or found.media_type != RESULT_TYPE:
        return None
    return text_of_result(bytes(found.data))


def is_newer(tx: ReadTx, hash: str, *, since: Micros) -> bool:  # noqa: A002 - named as the column
    """Say whether a content is there and was brought after ``since``."""
    return tx.exists("blobs.find_newer", hash=hash, since=since)


def add_ref(tx: Tx, *, hash: str, holder: str) -> None:  # noqa: A002 - named as the column
    """Note that ``holder`` needs a content; again is no change."""
    tx.run("blobs.add_ref", hash=hash, holder=holder)


def copy_refs(tx: Tx, *, from_holder: str, to_holder: str) -> None:
    """Let a holder need everything that another one needs."""
    tx.run("blobs.copy_refs", from_holder=from_holder, to_holder=to_holder)


def drop_refs(tx: Tx, *, holder: str) -> None:
    """Note that a holder needs nothing any more."""
    tx.run("blobs.drop_refs", holder=holder)


def collect(tx: Tx, *, before: Micros, limit: int) -> list[str]:
    """Drop contents that nobody needs and nobody brought after ``before``; return their hashes."""
    return tx.values("blobs.collect", before=before, limit=limit)
