"""The contents of images and files that messages show, and of results that were too long for them."""

from collections.abc import Iterable, Sequence

from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import MediaPart, Message
from keryx.core.conversations.rules.part import IMAGES
from keryx.core.conversations.tables import branches
from keryx.core.media import tables as blobs
from keryx.store.database import ReadTx

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


def read_shown(tx: ReadTx, spoken: Sequence[Message | Cover]) -> dict[str, bytes]:
    """Return the contents of images and text files that messages show; the newest, as many as the bound allows."""
    hashes = (
        part.blob
        for message in reversed(spoken)
        if not isinstance(message, Cover)
        for part in message.parts
        if isinstance(part, MediaPart) and (part.media_type in IMAGES or part.media_type.startswith("text/"))
    )
    shown: dict[str, bytes] = {}
    left = CONTENT_BYTES_MAX
    for digest in dict.fromkeys(filter(None, hashes)):
        content = read_contents(tx, [digest]).get(digest)
        if content is not None and len(content) <= left:
            shown[digest] = content
            left -= len(content)
    return shown


def read_result(tx: ReadTx, session_id: str, digest: str) -> str | None:
    """Return a long result whole, if it is one of the session's own, or of those it was forked from."""
    for holder in dict.fromkeys(branch.session_id for branch in branches.list_branches(tx, session_id)):
        found = blobs.find_result(tx, digest, session_id=holder)
        if found is not None:
            return found
    return None
