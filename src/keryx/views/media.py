"""The contents of images and files that messages show, and of results that were too long for them."""

from collections.abc import Iterable

from keryx.domain.long_result import RESULT_TYPE, text_of_result
from keryx.store.database import ReadTx
from keryx.store.tables import blobs, branches

CONTENT_BYTES_MAX = 8_000_000
"""What is larger is only named to a model."""


def read_contents(tx: ReadTx, hashes: Iterable[str]) -> dict[str, bytes]:
    """Return the contents that are in the store and not too large, by hash."""
    found = {digest: blobs.find_blob(tx, digest) for digest in hashes}
    return {
        digest: bytes(blob.data)
        for digest, blob in found.items()
        if blob is not None and blob.data is not None and blob.size_bytes <= CONTENT_BYTES_MAX
    }


def read_result(tx: ReadTx, session_id: str, digest: str) -> str | None:
    """Return a long result whole, if it is one of the session's own, or of those it was forked from."""
    for holder in dict.fromkeys(branch.session_id for branch in branches.list_branches(tx, session_id)):
        found = blobs.find_held(tx, digest, holder=blobs.session_holder(holder))
        if found is not None and found.data is not None and found.media_type == RESULT_TYPE:
            return text_of_result(bytes(found.data))
    return None
