"""Covers: summaries that replace ranges of a transcript when a model reads it.

The covered messages stay in the transcript, for people and for search. A cover applies to every branch whose path
contains its whole range, and is always smaller than the covered messages.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from keryx.clock import Micros
from keryx.core.conversations.rules.branch import Branch, Segment, path
from keryx.errors import InvalidValue
from keryx.values import dataclass

CoverRefusal = Literal["empty", "not_smaller", "not_on_path", "overlaps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryCost:
    """The usage of the model that wrote a summary; ``model`` is None if no model wrote the summary."""

    model: str | None = None
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summary of the messages ``first_seq`` to ``last_seq``, with their tokens and the summary's tokens."""

    first_seq: int
    last_seq: int
    text: str
    tokens_before: int
    tokens_after: int
    focus: str | None = None
    cost: SummaryCost = SummaryCost()
    notes: tuple[str, ...] = ()
    """Notes to keep beyond the session, one sentence each."""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InvalidValue(f"the summary of {self.first_seq} to {self.last_seq} is empty; give it a text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """A summary of the messages ``first_seq`` to ``last_seq`` of its branch's path."""

    session_id: str
    no: int
    branch_no: int
    first_seq: int
    last_seq: int
    summary: str
    tokens_before: int
    tokens_after: int
    focus: str | None = None
    created_at: Micros = 0

    def __post_init__(self) -> None:
        if not 1 <= self.first_seq <= self.last_seq:
            raise InvalidValue(
                f"cover of {self.first_seq} to {self.last_seq}: the range is empty; name two messages"
            )
        if self.tokens_after >= self.tokens_before:
            raise InvalidValue(
                f"cover of {self.tokens_after} tokens for {self.tokens_before}: a summary must be smaller"
            )


def covers_on(
    covers: Iterable[Cover], branches: Sequence[Branch], *, session_id: str, no: int
) -> list[Cover]:
    """Return the covers that apply to the branch, oldest range first and without overlaps.

    Of overlapping covers the widest applies (a later compression wraps an earlier one), of equal ones the newest, and
    of two from the same moment the session's own.
    """
    shown = path(branches, session_id=session_id, no=no)
    holding = [
        cover
        for cover in covers
        if _clip(path(branches, session_id=cover.session_id, no=cover.branch_no), cover)
        == _clip(shown, cover)
    ]
    holding.sort(
        key=lambda cover: (
            cover.first_seq - cover.last_seq,
            -cover.created_at,
            cover.session_id != session_id,
            -cover.no,
            cover.session_id,
        )
    )
    chosen: list[Cover] = []
    for cover in holding:
        if not any(_overlap(cover, other) for other in chosen):
            chosen.append(cover)
    chosen.sort(key=lambda cover: cover.first_seq)
    return chosen


def cover_refused(
    seqs: Sequence[int], active: Iterable[Cover], *, first_seq: int, last_seq: int, tokens: tuple[int, int]
) -> CoverRefusal | None:
    """Return why a summary must not cover the range, or None if it may.

    ``seqs`` are the messages of the path, ``active`` the covers that apply to it (a new cover may only wrap them in
    full), ``tokens`` the tokens of the range now and with the summary.
    """
    if first_seq > last_seq:
        return "empty"
    if first_seq not in seqs or last_seq not in seqs:
        return "not_on_path"
    before, after = tokens
    if after >= before:
        return "not_smaller"
    for cover in active:
        apart = cover.last_seq < first_seq or last_seq < cover.first_seq
        if not apart and not (first_seq <= cover.first_seq and cover.last_seq <= last_seq):
            return "overlaps"
    return None


def _clip(segments: Sequence[Segment], cover: Cover) -> list[tuple[str, int, int, int]]:
    """Return the parts of the path within the cover's range; equal parts hold the same messages."""
    clipped = []
    for segment in segments:
        first = max(segment.first_seq, cover.first_seq)
        last = min(segment.last_seq, cover.last_seq)
        if first <= last:
            clipped.append((segment.session_id, segment.branch_no, first, last))
    return clipped


def _overlap(one: Cover, other: Cover) -> bool:
    return one.first_seq <= other.last_seq and other.first_seq <= one.last_seq
