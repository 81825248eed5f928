"""Messages along the path of a branch: a few range scans, one in the common case."""

from collections.abc import Sequence

from keryx.core.conversations.rules.branch import PathMessage, Segment, owner_of
from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.tables import messages
from keryx.store.database import ReadTx


def list_tail(
    tx: ReadTx, path: Sequence[Segment], *, limit: int, last_seq: int = messages.SEQ_MAX
) -> list[PathMessage]:
    """Return the last ``limit`` messages of a path up to a number, oldest first."""
    found: list[PathMessage] = []
    for segment in reversed(path):
        if len(found) == limit:
            break
        rows = tx.rows(
            "branch_paths.list_last",
            session_id=segment.session_id,
            branch_no=segment.branch_no,
            first_seq=segment.first_seq,
            last_seq=min(_end(segment), last_seq),
            limit=limit - len(found),
        )
        found.extend(PathMessage(seq=seq, role=role, turn_id=turn_id) for seq, role, turn_id in rows)
    found.reverse()
    return found


def count_path(tx: ReadTx, path: Sequence[Segment]) -> int:
    """Count the messages of a path."""
    return sum(
        messages.count_range(
            tx,
            session_id=segment.session_id,
            branch_no=segment.branch_no,
            first_seq=segment.first_seq,
            last_seq=_end(segment),
        )
        for segment in path
    )


def find_message(tx: ReadTx, path: Sequence[Segment], seq: int) -> Message | None:
    """Return the message of the path that has this number, or None."""
    owner = owner_of(path, seq)
    if owner is None:
        return None
    found = messages.list_range(
        tx, session_id=owner.session_id, branch_no=owner.branch_no, first_seq=seq, last_seq=seq
    )
    return found[0] if found else None


def is_on_path(tx: ReadTx, path: Sequence[Segment], seq: int) -> bool:
    """Say whether a message of the path has this number."""
    owner = owner_of(path, seq)
    return owner is not None and (
        messages.count_range(
            tx, session_id=owner.session_id, branch_no=owner.branch_no, first_seq=seq, last_seq=seq
        )
        == 1
    )


def list_authors(tx: ReadTx, path: Sequence[Segment], *, first_seq: int, last_seq: int) -> frozenset[int]:
    """Return the people who spoke between two numbers of a path, as far as they are known."""
    return frozenset(
        author_id
        for segment in path
        for (author_id,) in tx.rows(
            "branch_paths.list_authors",
            session_id=segment.session_id,
            branch_no=segment.branch_no,
            first_seq=max(first_seq, segment.first_seq),
            last_seq=min(last_seq, _end(segment)),
        )
    )


def _end(segment: Segment) -> int:
    return messages.SEQ_MAX if segment.last_seq is None else segment.last_seq
