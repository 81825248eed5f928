"""The transcript of a session: the active branch, from its end backwards, or as a model reads it.

Reading costs what is shown: one range of rows, or a few after an undo or a fork. A damaged row is read as a message
with an unknown part, and never hides other messages.
"""

from collections.abc import Sequence
from typing import NamedTuple

from keryx.core.context.rules.cover import Cover, covers_on
from keryx.core.context.rules.guide_turns import without_guide
from keryx.core.context.rules.openai_chat import ChatMessage, to_openai
from keryx.core.context.tables.covers import list_covers
from keryx.core.conversations.rules.branch import SEQ_MAX, Segment, Siblings, path
from keryx.core.conversations.rules.branch import versions as versions_on
from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.tables import branches, messages
from keryx.core.media.views import read_shown
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import ReadTx

__all__ = ["conversation", "covered_messages", "list_transcript", "model_messages", "versions"]


class Head(NamedTuple):
    """The active branch, and the message before its own messages (0: none)."""

    branch_no: int
    parent_seq: int


def list_transcript(
    tx: ReadTx, session_id: str, *, person_id: int, last: int | None = 50, before: int | None = None
) -> list[Message]:
    """Return the last messages of the active branch, oldest first; None for ``last`` means all of them.

    ``before`` pages back: only messages with a smaller ``seq`` are returned.
    """
    if last is not None and last < 1:
        raise InvalidValue(f"the last {last} messages: ask for 1 or more, or None for all")
    last_seq = SEQ_MAX if before is None else before - 1
    limit = SEQ_MAX if last is None else last
    # Returns nothing if the session is not visible; _head then raises NotFound.
    found = tx.all(
        Message,
        "transcript.list_last",
        session_id=session_id,
        person_id=person_id,
        last_seq=last_seq,
        limit=limit,
    )
    if len(found) < limit:
        head = _head(tx, session_id, person_id=person_id)
        if head.parent_seq:
            inherited = branches.list_path(tx, session_id=session_id, branch_no=head.branch_no)[:-1]
            for segment in reversed(inherited):
                if len(found) < limit and segment.first_seq <= last_seq:
                    found += messages.list_last(tx, segment.clip(last_seq=last_seq), limit=limit - len(found))
    found.reverse()
    return found


def conversation(tx: ReadTx, session_id: str, *, person_id: int) -> list[ChatMessage]:
    """Return the active branch in OpenAI's chat format, with summaries instead of the messages that they cover."""
    read = model_messages(tx, session_id, person_id=person_id)
    return to_openai(read, media=read_shown(tx, read))


def model_messages(tx: ReadTx, session_id: str, *, person_id: int) -> list[Message | Cover]:
    """Return what a model reads of the active branch."""
    return without_guide(covered_messages(tx, session_id, person_id=person_id))


def covered_messages(tx: ReadTx, session_id: str, *, person_id: int) -> list[Message | Cover]:
    """Return the active branch with its summaries, and the guide's turns; do not fetch covered messages."""
    head = _head(tx, session_id, person_id=person_id)
    known = branches.list_branches(tx, session_id)
    segments = path(known, session_id=session_id, no=head.branch_no)
    covers = [
        cover
        for covered_session_id in dict.fromkeys([session_id, *(segment.session_id for segment in segments)])
        for cover in list_covers(tx, covered_session_id)
    ]
    view: list[Message | Cover] = []
    first_seq = 1
    for cover in covers_on(covers, known, session_id=session_id, no=head.branch_no) if covers else ():
        view += _between(tx, segments, first_seq=first_seq, last_seq=cover.first_seq - 1)
        view.append(cover)
        first_seq = cover.last_seq + 1
    view += _between(tx, segments, first_seq=first_seq, last_seq=SEQ_MAX)
    return view


def versions(tx: ReadTx, session_id: str, *, person_id: int) -> dict[int, Siblings]:
    """Return the versions that follow a message of the active branch, by the number of that message.

    The key 0 is for versions of the first message.
    """
    head = _head(tx, session_id, person_id=person_id)
    return versions_on(branches.list_branches(tx, session_id), session_id=session_id, no=head.branch_no)


def _head(tx: ReadTx, session_id: str, *, person_id: int) -> Head:
    row = tx.one(Head, "transcript.find_head", session_id=session_id, person_id=person_id)
    if row is None:
        raise NotFound(f"There is no session {session_id} that you may see.")
    return row


def _between(tx: ReadTx, segments: Sequence[Segment], *, first_seq: int, last_seq: int) -> list[Message]:
    found: list[Message] = []
    for segment in segments:
        part = segment.clip(first_seq=first_seq, last_seq=last_seq)
        if part.first_seq <= part.last_seq:
            found += messages.list_range(tx, part)
    return found
