"""Keep contents that messages refer to, and collect those that nobody needs any more."""

import hashlib
from typing import TypeAlias

from keryx.clock import DAY, Micros
from keryx.core.conversations.rules.session import SessionId
from keryx.core.media import tables as blobs
from keryx.store.database import Tx

Blob: TypeAlias = blobs.Blob

COLLECT_AFTER: Micros = DAY
"""Between bringing a content and the message that refers to it, a crash may lie; a day is long enough for any retry."""


def keep_blob(tx: Tx, session_id: SessionId, blob: Blob) -> None:
    """Keep a content for a session; its time is now.

    Where the bytes lie beside the store, they must be durable there before this is called.
    """
    blobs.add_blob(tx, hash=blob.hash, media_type=blob.media_type, size_bytes=blob.size_bytes, data=blob.data)
    blobs.add_ref(tx, hash=blob.hash, holder=blobs.session_holder(session_id))


def keep_text(tx: Tx, session_id: SessionId, text: str, *, media_type: str) -> str:
    """Keep a text for a session, in the store itself and once however many need it; return its hash."""
    data = text.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(data).hexdigest()
    # Many turns bring the same text at once: one that is there is left alone, so that none waits for another. What was
    # brought lately is not collected before the reference below holds it.
    if not blobs.is_newer(tx, digest, since=tx.now - COLLECT_AFTER // 2):
        blobs.add_blob(tx, hash=digest, media_type=media_type, size_bytes=len(data), data=data)
    blobs.add_ref(tx, hash=digest, holder=blobs.session_holder(session_id))
    return digest


def collect_blobs(tx: Tx, *, limit: int = 500) -> list[str]:
    """Drop contents that nobody has needed for a day; return their hashes, whose files may go after the commit."""
    return blobs.collect(tx, before=tx.now - COLLECT_AFTER, limit=limit)


def purge(tx: Tx, session_id: str) -> None:
    """Note that the session needs its blobs no more; they are collected later."""
    blobs.drop_refs(tx, holder=blobs.session_holder(session_id))
