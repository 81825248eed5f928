"""What was said in a session: the active branch, from its end backwards, or as a model reads it.

Reading costs what is shown: one range of rows where nothing was undone or forked, a few where it was. A torn row
is a message with an unknown part; it never hides the others.
"""

from collections.abc import Sequence
from typing import NamedTuple

from keryx.core.context.rules.cover import Cover, covers_on
from keryx.core.context.rules.openai_chat import ChatMessage, to_openai
from keryx.core.context.tables.covers import list_covers
from keryx.core.conversations.rules.branch import Segment, Siblings, path
from keryx.core.conversations.rules.branch import versions as versions_on
from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.tables import branches, messages
from keryx.core.conversations.tables.messages import SEQ_MAX
from keryx.core.media.views import read_shown
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import ReadTx

__all__ = ["conversation", "list_transcript", "model_messages", "versions"]


class Head(NamedTuple):
    """The branch that is shown, and the last message before its own ones (0: it begins with nothing)."""

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
    found = _list_last(tx, session_id, person_id=person_id, last_seq=last_seq, limit=limit)
    if len(found) < limit:
        head = _head(tx, session_id, person_id=person_id)
        if head.parent_seq:
            inherited = branches.list_path(tx, session_id=session_id, branch_no=head.branch_no)[:-1]
            for segment in reversed(inherited):
                found += _last_of(tx, segment, last_seq=last_seq, limit=limit - len(found))
    found.reverse()
    return found


def conversation(tx: ReadTx, session_id: str, *, person_id: int) -> list[ChatMessage]:
    """Return the active branch in OpenAI's chat format, summaries standing for what they cover."""
    spoken = model_messages(tx, session_id, person_id=person_id)
    return to_openai(spoken, media=read_shown(tx, spoken))


def model_messages(tx: ReadTx, session_id: str, *, person_id: int) -> list[Message | Cover]:
    """Return what a model reads of the active branch; covered messages are not even fetched."""
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
    """Return, for each shown message after which the session has several versions, these versions.

    The key 0 stands for versions of the first message.
    """
    head = _head(tx, session_id, person_id=person_id)
    return versions_on(branches.list_branches(tx, session_id), session_id=session_id, no=head.branch_no)


def _head(tx: ReadTx, session_id: str, *, person_id: int) -> Head:
    row = tx.one(Head, "transcript.find_head", session_id=session_id, person_id=person_id)
    if row is None:
        raise NotFound(f"There is no session {session_id} that you may see.")
    return row


def _last_of(tx: ReadTx, segment: Segment, *, last_seq: int, limit: int) -> list[Message]:
    # Inherited segments end where the next branch parted.
    end = last_seq if segment.last_seq is None else min(last_seq, segment.last_seq)
    if limit < 1 or end < segment.first_seq:
        return []
    return messages.list_last(
        tx,
        session_id=segment.session_id,
        branch_no=segment.branch_no,
        first_seq=segment.first_seq,
        last_seq=end,
        limit=limit,
    )


def _between(tx: ReadTx, segments: Sequence[Segment], *, first_seq: int, last_seq: int) -> list[Message]:
    found: list[Message] = []
    for segment in segments:
        first = max(first_seq, segment.first_seq)
        end = last_seq if segment.last_seq is None else min(last_seq, segment.last_seq)
        if first <= end:
            found += messages.list_range(
                tx, session_id=segment.session_id, branch_no=segment.branch_no, first_seq=first, last_seq=end
            )
    return found


def _list_last(tx: ReadTx, session_id: str, *, person_id: int, last_seq: int, limit: int) -> list[Message]:
    """Return the newest messages of the shown branch's own up to a number, newest first; none if not visible."""
    return tx.all(
        Message,
        "transcript.list_last",
        session_id=session_id,
        person_id=person_id,
        last_seq=last_seq,
        limit=limit,
    )
