"""Export a session as lines, a page at a time, so that no read is long and no page holds the whole session.

The messages that a fork shows of its parent are exported as the fork's own first branch, so the lines need no other
session.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from keryx.core.context.rules.cover import covers_on
from keryx.core.context.tables import covers
from keryx.core.conversations.rules.archive import (
    BranchLine,
    CoverLine,
    L,
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
from keryx.core.conversations.tables import branches, messages, projects, sessions, tags
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = ["ExportPage", "Rest", "begin_export", "continue_export", "find_turn"]

PAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """The rest of an export: segments with the branch numbers to write, and the numbers of the exported turns by id."""

    ranges: tuple[tuple[Segment, int], ...]
    turns: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPage:
    """Some lines, and the rest of the export; None on the last page."""

    lines: tuple[str, ...]
    rest: Rest | None


def begin_export(tx: ReadTx, session_id: str, *, person_id: int) -> ExportPage:
    """Return all lines but the messages; the rest contains the messages up to now."""
    session = sessions.get_visible(tx, session_id, person_id=person_id)
    known = branches.list_branches(tx, session_id)
    own = [branch for branch in known if branch.session_id == session_id]
    inherited = path(known, session_id=session_id, no=0)[:-1]
    unsaid = _list_unsaid(tx, session_id)
    lines: list[Line] = [
        _session_line(tx, session),
        *[TagLine(tag=tag) for tag in tags.list_tags(tx, session_id)],
        *tx.all(LinkLine, "archive.list_origins", session_id=session_id),
        *[_branch_line(branch) for branch in own if branch.no != 0],
        *_cover_lines(tx, session_id, known, inherited),
        *unsaid.values(),
    ]
    ranges = [(segment, 0) for segment in inherited]
    for branch in own:
        segment = Segment(
            session_id=session_id,
            branch_no=branch.no,
            first_seq=branch.parent_seq + 1,
            last_seq=session.last_seq,
        )
        ranges.append((segment, branch.no))
    return ExportPage(
        lines=tuple(map(format_line, lines)),
        rest=Rest(ranges=tuple(ranges), turns={turn_id: line.no for turn_id, line in unsaid.items()}),
    )


def continue_export(tx: ReadTx, rest: Rest) -> ExportPage:
    """Return the next messages, with the line of each turn before the turn's first message."""
    segment, branch_no = rest.ranges[0]
    page = messages.list_range(tx, segment, limit=PAGE)
    ranges = rest.ranges[1:]
    if len(page) == PAGE:
        ranges = ((replace(segment, first_seq=page[-1].seq + 1), branch_no), *ranges)
    turns = dict(rest.turns)
    lines = [format_line(line) for message in page for line in _message_lines(tx, message, branch_no, turns)]
    return ExportPage(lines=tuple(lines), rest=Rest(ranges=ranges, turns=turns) if ranges else None)


def find_turn(tx: ReadTx, turn_id: int, *, no: int) -> TurnLine | None:
    """Return the line of a turn under the number ``no``, or None if the turn does not exist."""
    line = tx.one(TurnLine, "archive.find_turn", turn_id=turn_id)
    return None if line is None else replace(line, no=no)


def _line_of(kind: type[L], record: object, **values: Any) -> L:
    """Return a line with these values, and with the record's values in the other fields of the same name."""
    names = [each.name for each in fields(kind) if each.name not in values and hasattr(record, each.name)]
    return kind(**values, **{name: getattr(record, name) for name in names})


def _session_line(tx: ReadTx, session: sessions.Session) -> SessionLine:
    project = None
    if session.project_id is not None:
        project = projects.get_project(tx, session.project_id, owner_id=session.owner_id).name
    return _line_of(SessionLine, session, project=project)


def _branch_line(branch: Branch) -> BranchLine:
    # An inherited parent is exported as branch 0.
    inherits = branch.parent_no is not None and branch.parent_session_id != branch.session_id
    return _line_of(BranchLine, branch, parent_no=0 if inherits else branch.parent_no)


def _cover_lines(
    tx: ReadTx, session_id: str, known: Sequence[Branch], inherited: Sequence[Segment]
) -> list[CoverLine]:
    """Return the inherited summaries, then the session's own, including dropped ones, numbered after these."""
    theirs = [
        cover
        for other_id in dict.fromkeys(segment.session_id for segment in inherited)
        for cover in covers.list_covers(tx, other_id)
    ]
    applying = covers_on(theirs, known, session_id=session_id, no=0) if theirs else []
    lines = [_line_of(CoverLine, cover, no=no, branch_no=0) for no, cover in enumerate(applying, start=1)]
    own = tx.all(CoverLine, "archive.list_covers", session_id=session_id)
    return lines + [replace(cover, no=cover.no + len(lines)) for cover in own]


def _message_lines(
    tx: ReadTx, message: Message, branch_no: int, turns: dict[int, int]
) -> Iterator[TurnLine | MessageLine]:
    turn_id = message.turn_id
    if turn_id is not None and turn_id not in turns:
        turn = find_turn(tx, turn_id, no=len(turns) + 1)
        if turn is not None:
            turns[turn_id] = turn.no
            yield replace(turn, branch_no=branch_no)
    yield _line_of(
        MessageLine, message, branch_no=branch_no, turn=None if turn_id is None else turns.get(turn_id)
    )


def _list_unsaid(tx: ReadTx, session_id: str) -> dict[int, TurnLine]:
    """Return the turns that used tokens and left no message, by id; the lines are numbered from 1."""
    found = tx.all(TurnLine, "archive.list_unsaid", session_id=session_id)
    return {line.no: replace(line, no=no) for no, line in enumerate(found, start=1)}
