"""Store blobs for the messages of a session, and delete blobs without a reference."""

import hashlib
from typing import TypeAlias

from keryx.clock import DAY, Micros
from keryx.core.conversations.rules.session import SessionId
from keryx.core.media import tables as blobs
from keryx.store.database import Tx

Blob: TypeAlias = blobs.Blob

COLLECT_AFTER: Micros = DAY
"""How long a blob without a reference is kept, so that an upload can be retried after a crash."""


def keep_blob(tx: Tx, session_id: SessionId, blob: Blob) -> None:
    """Store a blob for a session; ``created_at`` is ignored.

    Bytes outside the database must be durable before this call.
    """
    blobs.add_blob(tx, hash=blob.hash, media_type=blob.media_type, size_bytes=blob.size_bytes, data=blob.data)
    blobs.add_ref(tx, hash=blob.hash, holder=blobs.session_holder(session_id))


def keep_text(tx: Tx, session_id: SessionId, text: str, *, media_type: str) -> str:
    """Store a text in the database for a session, once for all sessions; return its hash."""
    data = text.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(data).hexdigest()
    # Many turns store the same text at once. A recent row is not renewed, so that no turn waits for another's lock. It
    # cannot be deleted before the reference is added.
    if not blobs.is_newer(tx, digest, since=tx.now - COLLECT_AFTER // 2):
        blobs.add_blob(tx, hash=digest, media_type=media_type, size_bytes=len(data), data=data)
    blobs.add_ref(tx, hash=digest, holder=blobs.session_holder(session_id))
    return digest


def collect_blobs(tx: Tx, *, limit: int = 500) -> list[str]:
    """Delete blobs that had no reference for a day; return the hashes of files to delete after the commit."""
    return blobs.collect(tx, before=tx.now - COLLECT_AFTER, limit=limit)


def purge(tx: Tx, session_id: str) -> None:
    """Delete the session's references to blobs; ``collect_blobs`` deletes the blobs later."""
    blobs.drop_refs(tx, holder=blobs.session_holder(session_id))
