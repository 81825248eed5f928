"""A session on its way out, as lines, a page at a time: no read lasts long and none holds the whole.

What a fork shows of the session it came from is written as the fork's own first branch, so that the lines stand
for themselves.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Final

from keryx.core.context.rules.cover import Cover, covers_on
from keryx.core.context.tables import covers
from keryx.core.conversations.rules.archive import (
    BranchLine,
    CoverLine,
    Line,
    LinkLine,
    MessageLine,
    SessionLine,
    TagLine,
    TurnLine,
    format_line,
)
from keryx.core.conversations.rules.branch import Branch, Segment, path
from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.tables import branches, projects, sessions, tags
from keryx.core.conversations.tables.messages import SEQ_MAX
from keryx.store.database import ReadTx, Row
from keryx.values import dataclass

__all__ = ["ExportPage", "Rest", "begin_export", "continue_export", "find_turn"]

PAGE: Final = 500

_TURN_COLUMNS: Final = tuple(field.name for field in fields(TurnLine) if field.name != "no")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What is still to be written: ranges of messages, each under the branch it goes out as, and turns told so far."""

    ranges: tuple[tuple[Segment, int], ...]
    turns: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPage:
    """Some lines, and what is left; None after the last page."""

    lines: tuple[str, ...]
    rest: Rest | None


def begin_export(tx: ReadTx, session_id: str, *, person_id: int) -> ExportPage:
    """Return everything about a session but its messages, which stand as they are at this moment."""
    session = sessions.get_visible(tx, session_id, person_id=person_id)
    known = branches.list_branches(tx, session_id)
    own = [branch for branch in known if branch.session_id == session_id]
    inherited = path(known, session_id=session_id, no=0)[:-1]
    lines: list[Line] = [
        _session_line(tx, session),
        *[TagLine(tag=tag) for tag in tags.list_tags(tx, session_id)],
        *_list_origins(tx, session_id),
        *[_branch_line(branch) for branch in own if branch.no != 0],
        *_cover_lines(tx, session_id, known, inherited),
    ]
    ranges = [(segment, 0) for segment in inherited] + [
        (
            Segment(
                session_id=session_id,
                branch_no=branch.no,
                first_seq=branch.parent_seq + 1,
                last_seq=session.last_seq,
            ),
            branch.no,
        )
        for branch in own
    ]
    unsaid = _list_unsaid(tx, session_id)
    return ExportPage(
        lines=tuple(format_line(line) for line in (*lines, *unsaid.values())),
        rest=Rest(ranges=tuple(ranges), turns={turn_id: line.no for turn_id, line in unsaid.items()}),
    )


def continue_export(tx: ReadTx, rest: Rest) -> ExportPage:
    """Return the next messages, each turn's line before its first message."""
    segment, branch_no = rest.ranges[0]
    messages = _list_messages(tx, segment)
    ranges = rest.ranges[1:]
    if len(messages) == PAGE:
        ranges = ((replace(segment, first_seq=messages[-1].seq + 1), branch_no), *ranges)
    turns = dict(rest.turns)
    lines = [
        format_line(line) for message in messages for line in _message_lines(tx, message, branch_no, turns)
    ]
    return ExportPage(lines=tuple(lines), rest=Rest(ranges=ranges, turns=turns) if ranges else None)


def _session_line(tx: ReadTx, session: sessions.Session) -> SessionLine:
    project = None
    if session.project_id is not None:
        project = projects.get_project(tx, session.project_id, owner_id=session.owner_id).name
    return SessionLine(
        id=session.id,
        source=session.source,
        started_at=session.started_at,
        last_active_at=session.last_active_at,
        active_branch_no=session.active_branch_no,
        profile=session.profile,
        display_name=session.display_name,
        title=session.title,
        title_by=session.title_by,
        preview=session.preview,
        project=project,
        workspace=session.workspace,
        model=session.model,
        model_settings=session.model_settings,
        personality=session.personality,
        closed_at=session.closed_at,
        close_reason=session.close_reason,
        pinned_at=session.pinned_at,
        archived_at=session.archived_at,
        reset_reason=session.reset_reason,
        flushed_seq=session.flushed_seq,
    )


def _branch_line(branch: Branch) -> BranchLine:
    # A parent in another session lies on what the first branch inherited, and goes out as that.
    parent_no = branch.parent_no if branch.parent_session_id == branch.session_id else 0
    return BranchLine(
        no=branch.no,
        reason=branch.reason,
        created_at=branch.created_at,
        parent_no=None if branch.parent_no is None else parent_no,
        parent_seq=branch.parent_seq,
    )


def _cover_lines(
    tx: ReadTx, session_id: str, known: Sequence[Branch], inherited: Sequence[Segment]
) -> list[CoverLine]:
    """Return the session's summaries, after those that it inherited, numbered anew if there are any."""
    theirs = [
        cover
        for other_id in dict.fromkeys(segment.session_id for segment in inherited)
        for cover in covers.list_covers(tx, other_id)
    ]
    holding = covers_on(theirs, known, session_id=session_id, no=0) if theirs else []
    lines = [_inherited_cover(cover, no) for no, cover in enumerate(holding, start=1)]
    return lines + [replace(cover, no=cover.no + len(lines)) for cover in _list_covers(tx, session_id)]


def _inherited_cover(cover: Cover, no: int) -> CoverLine:
    return CoverLine(
        no=no,
        branch_no=0,
        first_seq=cover.first_seq,
        last_seq=cover.last_seq,
        summary=cover.summary,
        tokens_before=cover.tokens_before,
        tokens_after=cover.tokens_after,
        created_at=cover.created_at,
        focus=cover.focus,
    )


def _message_lines(
    tx: ReadTx, message: Message, branch_no: int, turns: dict[int, int]
) -> Iterator[TurnLine | MessageLine]:
    turn_id = message.turn_id
    if turn_id is not None and turn_id not in turns:
        turn = find_turn(tx, turn_id, no=len(turns) + 1)
        if turn is not None:
            turns[turn_id] = turn.no
            yield replace(turn, branch_no=branch_no)
    yield MessageLine(
        branch_no=branch_no,
        seq=message.seq,
        role=message.role,
        body=message.body,
        created_at=message.created_at,
        author=message.author,
        turn=None if turn_id is None else turns.get(turn_id),
        input_tokens=message.input_tokens,
        cached_tokens=message.cached_tokens,
        output_tokens=message.output_tokens,
        thinking_tokens=message.thinking_tokens,
        cost_micros=message.cost_micros,
        finish_reason=message.finish_reason,
    )


def find_turn(tx: ReadTx, turn_id: int, *, no: int) -> TurnLine | None:
    """Return a turn under the number it gets in the lines, or None when it is gone."""
    row = tx.row("archive.find_turn", turn_id=turn_id)
    return None if row is None else _turn_line(row, no=no)


def _list_unsaid(tx: ReadTx, session_id: str) -> dict[int, TurnLine]:
    """Return the turns that used something and left no message, by their ids, numbered from 1 on."""
    rows = tx.rows("archive.list_unsaid", session_id=session_id)
    return {row[0]: _turn_line(row, no=no) for no, row in enumerate(rows, start=1)}


def _turn_line(row: Row, *, no: int) -> TurnLine:
    return TurnLine(no=no, **dict(zip(_TURN_COLUMNS, row[1:], strict=True)))


def _list_covers(tx: ReadTx, session_id: str) -> list[CoverLine]:
    """Return all summaries of a session, dropped ones included, in the order they were made."""
    return tx.all(CoverLine, "archive.list_covers", session_id=session_id)


def _list_origins(tx: ReadTx, session_id: str) -> list[LinkLine]:
    """Return what a session came out of, oldest first."""
    return [
        LinkLine(kind=kind, created_at=created_at, from_session_id=source, at_seq=at_seq, origin=origin)
        for kind, created_at, source, at_seq, origin in tx.rows("archive.list_origins", session_id=session_id)
    ]


def _list_messages(tx: ReadTx, segment: Segment) -> list[Message]:
    """Return the first page of messages of a segment, oldest first."""
    return tx.all(
        Message,
        "archive.list_messages",
        session_id=segment.session_id,
        branch_no=segment.branch_no,
        first_seq=segment.first_seq,
        last_seq=SEQ_MAX if segment.last_seq is None else segment.last_seq,
        limit=PAGE,
    )
