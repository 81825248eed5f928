"""Branches of a transcript.

A branch is the parent's messages up to one of them, then its own messages. The parent is the branch that *owns*
that message, so the length of a path grows with the conversation's real forks and not with its retries. ``seq``
rises along every path. The rules copy and drop no message.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal, get_args

from keryx.clock import Micros
from keryx.core.conversations.rules.message import Role
from keryx.core.values.turn_states import TurnId
from keryx.errors import InvalidValue
from keryx.values import dataclass

BranchReason = Literal["root", "undo", "retry", "edit", "rollback", "fork"]
BRANCH_REASONS: Final[tuple[BranchReason, ...]] = get_args(BranchReason)

SEQ_MAX: Final = 2**62
"""Greater than the number of any message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One branch of a session; a branch without a parent begins empty."""

    session_id: str
    no: int
    parent_session_id: str | None = None
    parent_no: int | None = None
    parent_seq: int = 0
    reason: BranchReason = "root"
    created_at: Micros = 0

    def __post_init__(self) -> None:
        if self.reason not in BRANCH_REASONS:
            raise InvalidValue(
                f"reason {self.reason!r} of a branch is not one of {', '.join(BRANCH_REASONS)}"
            )
        orphan = self.parent_no is None
        if (
            orphan != (self.parent_session_id is None)
            or orphan != (self.parent_seq == 0)
            or self.parent_seq < 0
        ):
            raise InvalidValue(
                f"branch {self.no} of {self.session_id}: a parent is a session, a branch and a seq from 1 on; "
                "give all three or none"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The messages of one branch from ``first_seq`` to ``last_seq``; an open segment ends at ``SEQ_MAX``."""

    session_id: str
    branch_no: int
    first_seq: int
    last_seq: int = SEQ_MAX

    def clip(self, *, first_seq: int = 1, last_seq: int = SEQ_MAX) -> "Segment":
        """Return the part of the segment between two numbers; the part may be empty."""
        return replace(self, first_seq=max(self.first_seq, first_seq), last_seq=min(self.last_seq, last_seq))


@dataclass(frozen=True, slots=True, kw_only=True)
class PathMessage:
    """The fields of a message that are needed to find where turns begin."""

    seq: int
    role: Role
    turn_id: TurnId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Siblings:
    """The versions of one message: the branches that hold the versions, oldest first, and the branch that is shown."""

    branch_nos: tuple[int, ...]
    shown: int

    @property
    def label(self) -> str:
        """The label for people, like ``2/3``."""
        return f"{self.branch_nos.index(self.shown) + 1}/{len(self.branch_nos)}"


def path(branches: Iterable[Branch], *, session_id: str, no: int) -> list[Segment]:
    """Return the segments that make up the branch, oldest first; the last segment is open.

    ``branches`` must contain every ancestor, including a fork's ancestors in other sessions.
    """
    known = {(branch.session_id, branch.no): branch for branch in branches}
    segments: list[Segment] = []
    next_session_id: str | None = session_id
    next_no: int | None = no
    last_seq = SEQ_MAX
    while next_session_id is not None and next_no is not None:
        # Remove the branch from ``known``, so that a cycle ends like a missing parent.
        branch = known.pop((next_session_id, next_no), None)
        if branch is None:
            raise InvalidValue(
                f"branch {next_no} of session {next_session_id} does not exist, or is its own ancestor"
            )
        if last_seq > branch.parent_seq:
            segments.append(
                Segment(
                    session_id=branch.session_id,
                    branch_no=branch.no,
                    first_seq=branch.parent_seq + 1,
                    last_seq=last_seq,
                )
            )
        last_seq = min(last_seq, branch.parent_seq)
        next_session_id, next_no = branch.parent_session_id, branch.parent_no
    segments.reverse()
    return segments


def owner_of(segments: Sequence[Segment], seq: int) -> Segment | None:
    """Return the segment of the path that holds ``seq``, or None if ``seq`` is outside the path."""
    for segment in reversed(segments):
        if segment.first_seq <= seq:
            return segment if seq <= segment.last_seq else None
    return None


def path_up_to(shown: Sequence[Segment], seq: int) -> list[Segment]:
    """Return the part of a path that ends with message ``seq``."""
    return [segment.clip(last_seq=seq) for segment in shown if segment.first_seq <= seq]


def branch_at(
    segments: Sequence[Segment], seq: int, *, session_id: str, no: int, reason: BranchReason
) -> Branch:
    """Return a new branch ``no`` that keeps the path up to message ``seq``; 0 keeps nothing.

    ``seq`` must be a message of the path: a number inside a gap would make paths grow with every retry. The caller
    sets ``created_at``.
    """
    if seq == 0:
        return Branch(session_id=session_id, no=no, reason=reason)
    owner = owner_of(segments, seq)
    if owner is None:
        raise InvalidValue(f"message {seq} is not on the path; branch at one of its messages, or at 0")
    return Branch(
        session_id=session_id,
        no=no,
        parent_session_id=owner.session_id,
        parent_no=owner.branch_no,
        parent_seq=seq,
        reason=reason,
    )


def turn_starts(messages: Sequence[PathMessage]) -> list[int]:
    """Return the indices at which turns begin: user messages that join neither a running turn nor a user message."""
    starts = []
    for index, message in enumerate(messages):
        if message.role != "user":
            continue
        previous = messages[index - 1] if index else None
        if previous is None or previous.turn_id != message.turn_id:
            starts.append(index)
        elif message.turn_id is None and previous.role != "user":
            # A program appended these messages without turns: consecutive user messages begin one turn.
            starts.append(index)
    return starts


def undo_point(messages: Sequence[PathMessage], *, turns: int = 1, before: int = 0) -> int | None:
    """Return the last message to keep when undoing the last ``turns`` turns, or None if there are fewer turns.

    ``messages`` is the path or its tail; ``before`` is the message before the tail (0: none).
    """
    if turns < 1:
        raise InvalidValue(f"undo of {turns} turns: give a number from 1 on")
    starts = turn_starts(messages)
    if len(starts) < turns:
        return None
    index = starts[-turns]
    return messages[index - 1].seq if index else before


def retry_point(messages: Sequence[PathMessage], *, seq: int | None = None) -> int | None:
    """Return the last message to keep when the turn of message ``seq`` (None: the last turn) runs again.

    This is the last of the user messages that began the turn; None if no turn begins in ``messages``.
    """
    starts = [index for index in turn_starts(messages) if seq is None or messages[index].seq <= seq]
    if not starts:
        return None
    index = starts[-1]
    while index + 1 < len(messages) and messages[index + 1].role == "user":
        if messages[index + 1].turn_id != messages[index].turn_id:
            break
        index += 1
    return messages[index].seq


def edit_point(messages: Sequence[PathMessage], *, seq: int, before: int = 0) -> int:
    """Return the last message to keep when another text replaces message ``seq``."""
    previous = before
    for message in messages:
        if message.seq == seq:
            return previous
        previous = message.seq
    raise InvalidValue(f"message {seq} is not on this branch; edit a message of the branch that is shown")


def versions(branches: Sequence[Branch], *, session_id: str, no: int) -> dict[int, Siblings]:
    """Return the versions of the path's messages, by the number of the message before them.

    The key 0 means versions of the first message. An undone branch without a message is a version too. Branches of
    other sessions count only as ancestors: a fork is a separate session.
    """
    shown = path(branches, session_id=session_id, no=no)
    found: dict[int, dict[Segment, int]] = {}
    for branch in branches:
        if branch.session_id != session_id or branch.no == no:
            continue
        seq, ours, theirs = _parting(shown, path(branches, session_id=session_id, no=branch.no))
        continuations = found.setdefault(seq, {ours: no})
        # Of several branches that share a continuation, the newest is the one that people used last.
        continuations[theirs] = max(branch.no, continuations.get(theirs, branch.no))
    return {
        seq: _siblings(continuations, session_id=session_id, shown=no) for seq, continuations in found.items()
    }


def redo_targets(branches: Sequence[Branch], *, session_id: str, no: int) -> list[int]:
    """Return the older branches that part where branch ``no`` began, newest first: the targets of a redo."""
    shown = path(branches, session_id=session_id, no=no)
    began = began_at(branches, session_id=session_id, no=no)
    older = sorted(
        (each.no for each in branches if each.session_id == session_id and each.no < no), reverse=True
    )
    return [
        candidate
        for candidate in older
        if _parting(shown, path(branches, session_id=session_id, no=candidate))[0] == began
    ]


def began_at(branches: Sequence[Branch], *, session_id: str, no: int) -> int:
    """Return the last message that a branch shares with its parent."""
    return next(each.parent_seq for each in branches if (each.session_id, each.no) == (session_id, no))


def _parting(ours: Sequence[Segment], theirs: Sequence[Segment]) -> tuple[int, Segment, Segment]:
    """Return the last message that two different paths share, and the (opened) segment in which each continues."""
    # Always found: two branches end in different segments.
    index = next(place for place, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1])
    mine, other = ours[index], theirs[index]
    if (mine.session_id, mine.branch_no) == (other.session_id, other.branch_no):
        shared = min(mine.last_seq, other.last_seq)
        return shared, _going_on(ours, index, shared), _going_on(theirs, index, shared)
    shared = ours[index - 1].last_seq if index else 0
    return shared, _opened(mine), _opened(other)


def _going_on(segments: Sequence[Segment], index: int, seq: int) -> Segment:
    return _opened(segments[index] if segments[index].last_seq > seq else segments[index + 1])


def _opened(segment: Segment) -> Segment:
    return replace(segment, last_seq=SEQ_MAX)


def _siblings(continuations: dict[Segment, int], *, session_id: str, shown: int) -> Siblings:
    # The branches that a fork inherited are older than its own branches.
    ordered = sorted(continuations, key=lambda segment: (segment.session_id == session_id, segment.branch_no))
    return Siblings(branch_nos=tuple(continuations[segment] for segment in ordered), shown=shown)
