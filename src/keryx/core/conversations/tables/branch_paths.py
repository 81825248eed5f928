"""Messages along the path of a branch: a few range scans, one in the common case."""

from collections.abc import Sequence
from dataclasses import asdict

from keryx.core.conversations.rules.branch import SEQ_MAX, PathMessage, Segment, owner_of
from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.tables import messages
from keryx.store.database import ReadTx


def list_tail(
    tx: ReadTx, path: Sequence[Segment], *, limit: int, last_seq: int = SEQ_MAX
) -> list[PathMessage]:
    """Return the last ``limit`` messages of a path up to number ``last_seq``, oldest first."""
    found: list[PathMessage] = []
    for segment in reversed(path):
        if len(found) == limit:
            break
        found += tx.all(
            PathMessage,
            "branch_paths.list_last",
            **asdict(segment.clip(last_seq=last_seq)),
            limit=limit - len(found),
        )
    found.reverse()
    return found


def count_path(tx: ReadTx, path: Sequence[Segment]) -> int:
    """Count the messages of a path."""
    return sum(messages.count_range(tx, segment) for segment in path)


def find_message(tx: ReadTx, path: Sequence[Segment], seq: int) -> Message | None:
    """Return message ``seq`` of the path, or None."""
    owner = owner_of(path, seq)
    found = [] if owner is None else messages.list_range(tx, owner.clip(first_seq=seq, last_seq=seq))
    return found[0] if found else None


def is_on_path(tx: ReadTx, path: Sequence[Segment], seq: int) -> bool:
    """Return whether the path has a message ``seq``."""
    owner = owner_of(path, seq)
    return owner is not None and messages.count_range(tx, owner.clip(first_seq=seq, last_seq=seq)) == 1


def list_authors(tx: ReadTx, path: Sequence[Segment], *, first_seq: int, last_seq: int) -> frozenset[int]:
    """Return the known authors of the user messages between two numbers of a path."""
    return frozenset(
        author_id
        for segment in path
        for author_id in tx.values(
            "branch_paths.list_authors", **asdict(segment.clip(first_seq=first_seq, last_seq=last_seq))
        )
    )
