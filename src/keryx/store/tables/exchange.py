"""Sessions on their way out of a store and into one: rows with the times and numbers they had."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from keryx.domain.archive import BranchLine, CoverLine, LinkLine, MessageLine, SessionLine, TurnLine
from keryx.domain.branch import Segment
from keryx.domain.message import Message, decode_parts, tool_call_count
from keryx.domain.turn import turn_ended
from keryx.store.codec import clean_text, to_json
from keryx.store.database import Contended, ReadTx, Row, Tx
from keryx.store.tables.messages import SEQ_MAX, read_message


def list_covers(tx: ReadTx, session_id: str) -> list[CoverLine]:
    """Return all summaries of a session, dropped ones included, in the order they were made."""
    names = (
        *(
            "no",
            "branch_no",
            "first_seq",
            "last_seq",
            "summary",
            "tokens_before",
            "tokens_after",
            "created_at",
        ),
        *("focus", "dropped_at"),
        *("model", "input_tokens", "cached_tokens", "output_tokens", "cost_micros"),
    )
    rows = tx.rows("exchange.list_covers", session_id=session_id)
    return [CoverLine(**dict(zip(names, row, strict=True))) for row in rows]


def list_origins(tx: ReadTx, session_id: str) -> list[LinkLine]:
    """Return what a session came out of, oldest first."""
    return [
        LinkLine(kind=kind, created_at=created_at, from_session_id=source, at_seq=at_seq, origin=origin)
        for kind, created_at, source, at_seq, origin in tx.rows(
            "exchange.list_origins", session_id=session_id
        )
    ]


def find_turn(tx: ReadTx, turn_id: int, *, no: int) -> TurnLine | None:
    """Return a turn under the number it gets in the lines, or None when it is gone."""
    row = tx.row("exchange.find_turn", turn_id=turn_id)
    if row is None:
        return None
    return _turn_line(row, no=no)


def list_unsaid(tx: ReadTx, session_id: str) -> dict[int, TurnLine]:
    """Return the turns that used something and left no message, by their ids, numbered from 1 on."""
    rows = tx.rows("exchange.list_unsaid", session_id=session_id)
    return {row[0]: _turn_line(row, no=no) for no, row in enumerate(rows, start=1)}


def _turn_line(row: Row, *, no: int) -> TurnLine:
    names = (
        *("branch_no", "state", "purpose", "begun_at", "ended_at", "reason", "model"),
        *("input_tokens", "cached_tokens", "output_tokens", "thinking_tokens", "cost_micros"),
    )
    return TurnLine(no=no, **dict(zip(names, row[1:], strict=True)))


def list_messages(tx: ReadTx, segment: Segment, *, limit: int) -> list[Message]:
    """Return the first messages of a segment, oldest first."""
    rows = tx.rows(
        "exchange.list_messages",
        session_id=segment.session_id,
        branch_no=segment.branch_no,
        first_seq=segment.first_seq,
        last_seq=SEQ_MAX if segment.last_seq is None else segment.last_seq,
        limit=limit,
    )
    return [read_message(row) for row in rows]


def add_session(
    tx: Tx,
    session: SessionLine,
    *,
    owner_id: int,
    audience_id: int,
    project_id: int | None,
    last_branch_no: int,
) -> None:
    """Add a session that came from elsewhere, without its counters."""
    columns: dict[str, Any] = asdict(session) | {
        "owner_id": owner_id,
        "audience_id": audience_id,
        "state": "open" if session.closed_at is None else "closed",
        "platform": session.source.platform,
        "source": to_json(session.source.to_dict()),
        "project_id": project_id,
        "last_branch_no": last_branch_no,
    }
    del columns["project"]
    if not tx.run("exchange.add_session", **_clean(columns)):
        raise Contended


def add_branch(tx: Tx, session_id: str, line: BranchLine) -> None:
    """Add a branch with its time."""
    parent_session_id = None if line.parent_no is None else session_id
    tx.run("exchange.add_branch", session_id=session_id, parent_session_id=parent_session_id, **asdict(line))


def add_cover(tx: Tx, session_id: str, line: CoverLine) -> None:
    """Add a summary with its times."""
    tx.run("exchange.add_cover", session_id=session_id, **_clean(asdict(line)))


def add_link(tx: Tx, session_id: str, line: LinkLine) -> None:
    """Note what a session came out of."""
    tx.run("exchange.add_link", session_id=session_id, **_clean(asdict(line)))


def add_turn(tx: Tx, session_id: str, line: TurnLine) -> int:
    """Add a turn, which is over, and return its id; one that was under way elsewhere was lost on the way."""
    columns = asdict(line) | {"state": line.state if turn_ended(line.state) else "lost"}
    del columns["no"]
    columns["ended_at"] = line.begun_at if line.ended_at is None else line.ended_at
    row = tx.row("exchange.add_turn", session_id=session_id, **_clean(columns))
    assert row is not None
    turn_id: int = row[0]
    return turn_id


def add_messages(tx: Tx, session_id: str, lines: Sequence[MessageLine], *, turn_ids: dict[int, int]) -> None:
    """Add messages with their places and times, and a fact for each; the session has no others."""
    tx.run_many("exchange.add_message", [_columns(session_id, line, turn_ids) for line in lines])
    tx.run("exchange.add_facts", session_id=session_id)


def set_counters(tx: Tx, session_id: str, *, last_seq: int, message_count: int) -> None:
    """Let the counters say what the rows say."""
    tx.run("exchange.count", session_id=session_id, last_seq=last_seq, message_count=message_count)


def _columns(session_id: str, line: MessageLine, turn_ids: dict[int, int]) -> dict[str, Any]:
    columns = asdict(line)
    turn, body = columns.pop("turn"), columns.pop("body")
    return _clean(columns) | {
        "session_id": session_id,
        "parts": clean_text(body),
        "turn_id": None if turn is None else turn_ids[turn],
        "tool_call_count": tool_call_count(decode_parts(body)),
    }


def _clean(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: clean_text(value) if isinstance(value, str) else value for name, value in columns.items()}
