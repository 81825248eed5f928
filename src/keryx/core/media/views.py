"""The contents of images and files in messages, and of long results."""

from collections.abc import Iterable, Sequence

from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import MediaPart, Message
from keryx.core.conversations.rules.part import IMAGES
from keryx.core.conversations.tables import branches
from keryx.core.media import tables as blobs
from keryx.store.database import ReadTx

CONTENT_BYTES_MAX = 8_000_000
"""A model gets only the name of a larger file."""


def read_contents(tx: ReadTx, hashes: Iterable[str]) -> dict[str, bytes]:
    """Return the contents in the database that are not too large, by hash."""
    found = {digest: blobs.find_blob(tx, digest) for digest in hashes}
    return {
        digest: bytes(blob.data)
        for digest, blob in found.items()
        if blob is not None and blob.data is not None and blob.size_bytes <= CONTENT_BYTES_MAX
    }


def read_shown(tx: ReadTx, shown: Sequence[Message | Cover]) -> dict[str, bytes]:
    """Return the contents of images and text files in messages, newest first, up to ``CONTENT_BYTES_MAX``."""
    hashes = (
        part.blob
        for message in reversed(shown)
        if not isinstance(message, Cover)
        for part in message.parts
        if isinstance(part, MediaPart) and (part.media_type in IMAGES or part.media_type.startswith("text/"))
    )
    contents: dict[str, bytes] = {}
    left = CONTENT_BYTES_MAX
    for digest in dict.fromkeys(filter(None, hashes)):
        content = read_contents(tx, [digest]).get(digest)
        if content is not None and len(content) <= left:
            contents[digest] = content
            left -= len(content)
    return contents


def read_result(tx: ReadTx, session_id: str, digest: str) -> str | None:
    """Return a long result of the session or of its ancestors, or None."""
    for holder in dict.fromkeys(branch.session_id for branch in branches.list_branches(tx, session_id)):
        found = blobs.find_result(tx, digest, session_id=holder)
        if found is not None:
            return found
    return None
