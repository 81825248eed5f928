"""Keep contents that messages refer to, and collect those that nobody needs any more."""

from typing import TypeAlias

from keryx.clock import DAY, Micros
from keryx.domain.long_result import RESULT_TYPE, LongResult
from keryx.domain.session import SessionId
from keryx.store.database import Tx
from keryx.store.tables import blobs

Blob: TypeAlias = blobs.Blob

COLLECT_AFTER: Micros = DAY
"""Between bringing a content and the message that refers to it, a crash may lie; a day is long enough for any retry."""


def keep_blob(tx: Tx, session_id: SessionId, blob: Blob) -> None:
    """Keep a content for a session; its time is now.

    Where the bytes lie beside the store, they must be durable there before this is called.
    """
    blobs.add_blob(tx, hash=blob.hash, media_type=blob.media_type, size_bytes=blob.size_bytes, data=blob.data)
    blobs.add_ref(tx, hash=blob.hash, holder=blobs.session_holder(session_id))


def keep_result(tx: Tx, session_id: SessionId, whole: LongResult) -> None:
    """Keep a result whole for a session, in the transaction that stores what is shown of it."""
    data = whole.data
    keep_blob(
        tx,
        session_id,
        blobs.Blob(
            hash=whole.hash, media_type=RESULT_TYPE, size_bytes=len(data), data=data, created_at=tx.now
        ),
    )


def collect_blobs(tx: Tx, *, limit: int = 500) -> list[str]:
    """Drop contents that nobody has needed for a day; return their hashes, whose files may go after the commit."""
    return blobs.collect(tx, before=tx.now - COLLECT_AFTER, limit=limit)
