"""The contents of images and files that messages show."""

from collections.abc import Iterable

from keryx.store.database import ReadTx
from keryx.store.tables import blobs

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
