"""Blobs, which are named by their SHA-256, and the references to them.

A session refers to its blobs as ``session_holder``. A blob without a reference is deleted a day after its last upload.
"""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.media.rules import RESULT_TYPE, text_of_result
from keryx.store.codec import clean_text
from keryx.store.database import ReadTx, Tx


class Blob(NamedTuple):
    """A row of the table; ``data`` is None if the bytes are stored outside the database."""

    hash: str
    media_type: str
    size_bytes: int
    data: bytes | None
    created_at: Micros


def session_holder(session_id: str) -> str:
    """Return the holder name of a session."""
    return f"session:{session_id}"


def add_blob(tx: Tx, *, hash: str, media_type: str, size_bytes: int, data: bytes | None) -> None:  # noqa: A002 - named as the column
    """Add a blob, or renew the time of an existing one."""
    tx.run("blobs.add", hash=hash, media_type=clean_text(media_type), size_bytes=size_bytes, data=data)


def find_blob(tx: ReadTx, hash: str) -> Blob | None:  # noqa: A002 - named as the column
    """Return a blob, or None."""
    return tx.one(Blob, "blobs.find", hash=hash)


def find_held(tx: ReadTx, hash: str, *, holder: str) -> Blob | None:  # noqa: A002 - named as the column
    """Return a blob to which ``holder`` refers, or None."""
    return tx.one(Blob, "blobs.find_held", hash=hash, holder=holder)


def find_result(tx: ReadTx, digest: str, *, session_id: str) -> str | None:
    """Return the text of a long result to which a session refers, or None."""
    found = find_held(tx, digest, holder=session_holder(session_id))
    if found is None or found.data is None or found.media_type != RESULT_TYPE:
        return None
    return text_of_result(bytes(found.data))


def is_newer(tx: ReadTx, hash: str, *, since: Micros) -> bool:  # noqa: A002 - named as the column
    """Return whether a blob was uploaded after ``since``."""
    return tx.exists("blobs.find_newer", hash=hash, since=since)


def add_ref(tx: Tx, *, hash: str, holder: str) -> None:  # noqa: A002 - named as the column
    """Add a reference of ``holder`` to a blob."""
    tx.run("blobs.add_ref", hash=hash, holder=holder)


def copy_refs(tx: Tx, *, from_holder: str, to_holder: str) -> None:
    """Copy all references of one holder to another."""
    tx.run("blobs.copy_refs", from_holder=from_holder, to_holder=to_holder)


def drop_refs(tx: Tx, *, holder: str) -> None:
    """Delete all references of a holder."""
    tx.run("blobs.drop_refs", holder=holder)


def collect(tx: Tx, *, before: Micros, limit: int) -> list[str]:
    """Delete blobs without a reference that were not uploaded after ``before``; return their hashes."""
    return tx.values("blobs.collect", before=before, limit=limit)
