"""A session as lines of JSON: its state, and all messages of all branches.

``parse_line`` of a line from ``format_line`` gives an equal value. People, audiences and row ids belong to a store
and are not exported: the person who imports a session owns it there. The messages that a fork shows of its parent
are written as its own.
"""

import re
from collections.abc import Iterator
from dataclasses import fields
from json import dumps, loads
from typing import Any, Final, TypeVar, get_args, get_type_hints

from keryx.clock import Micros
from keryx.core.conversations.rules.branch import Branch, BranchReason, path
from keryx.core.conversations.rules.message import ROLES, Role
from keryx.core.conversations.rules.session import LINK_KINDS, LinkKind
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.rules.title import TitleBy
from keryx.core.values.turn_states import TURN_PURPOSES, TURN_STATES, TurnPurpose, TurnState
from keryx.errors import InvalidValue
from keryx.values import dataclass

FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLine:
    """The state of the session; an import keeps ``id`` if the id is free."""

    id: str
    source: Source
    started_at: Micros
    last_active_at: Micros
    active_branch_no: int = 0
    profile: str = "main"
    display_name: str | None = None
    title: str | None = None
    title_by: TitleBy | None = None
    preview: str | None = None
    project: str | None = None
    workspace: str | None = None
    model: str | None = None
    model_settings: str | None = None
    personality: str | None = None
    closed_at: Micros | None = None
    close_reason: str | None = None
    pinned_at: Micros | None = None
    archived_at: Micros | None = None
    reset_reason: str | None = None
    flushed_seq: int = 0

    def __post_init__(self) -> None:
        if self.title_by not in (None, *get_args(TitleBy)):
            raise InvalidValue(f"title_by {self.title_by!r}: use one of {', '.join(get_args(TitleBy))}")
        if (self.title is None) != (self.title_by is None):
            raise InvalidValue("title and title_by: give both or none")
        if (self.closed_at is None) != (self.close_reason is None):
            raise InvalidValue("closed_at and close_reason: give both or none")


@dataclass(frozen=True, slots=True, kw_only=True)
class TagLine:
    """A tag of the session."""

    tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLine:
    """The origin of the session."""

    kind: LinkKind
    created_at: Micros
    from_session_id: str | None = None
    at_seq: int | None = None
    origin: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in LINK_KINDS:
            raise InvalidValue(f"link kind {self.kind!r} is not one of {', '.join(LINK_KINDS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchLine:
    """A branch that continues another branch of the session, or begins empty."""

    no: int
    reason: BranchReason
    created_at: Micros
    parent_no: int | None = None
    parent_seq: int = 0

    def as_branch(self, session_id: str) -> Branch:
        """Return the branch of a session that the line describes."""
        return Branch(
            session_id=session_id,
            no=self.no,
            parent_session_id=None if self.parent_no is None else session_id,
            parent_no=self.parent_no,
            parent_seq=self.parent_seq,
            reason=self.reason,
            created_at=self.created_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverLine:
    """A summary, including a dropped one."""

    no: int
    branch_no: int
    first_seq: int
    last_seq: int
    summary: str
    tokens_before: int
    tokens_after: int
    created_at: Micros
    focus: str | None = None
    dropped_at: Micros | None = None
    model: str | None = None
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.first_seq <= self.last_seq or self.tokens_after >= self.tokens_before:
            raise InvalidValue(
                f"cover {self.no}: it must cover a message, and be smaller than the covered messages"
            )
        if min(self.input_tokens, self.cached_tokens, self.output_tokens, self.cost_micros) < 0:
            raise InvalidValue(f"cover {self.no}: counts begin at 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLine:
    """A turn, numbered by its first message; or a turn without messages that used tokens.

    The counts are those of answers that are in no transcript.
    """

    no: int
    branch_no: int
    state: TurnState
    purpose: TurnPurpose
    begun_at: Micros
    ended_at: Micros | None = None
    reason: str | None = None
    model: str | None = None
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cost_micros: int = 0
    zone: str | None = None

    def __post_init__(self) -> None:
        tokens = (self.input_tokens, self.cached_tokens, self.output_tokens, self.thinking_tokens)
        if min(*tokens, self.cost_micros) < 0:
            raise InvalidValue(f"turn {self.no}: counts begin at 0")
        if self.state not in TURN_STATES or self.purpose not in TURN_PURPOSES:
            raise InvalidValue(
                f"turn {self.no}: state {self.state!r} or purpose {self.purpose!r} is not known"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLine:
    """A message; ``body`` is the stored text of its parts, even if damaged."""

    branch_no: int
    seq: int
    role: Role
    body: str
    created_at: Micros
    author: str | None = None
    turn: int | None = None
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cost_micros: int = 0
    finish_reason: str | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidValue(f"role {self.role!r} of message {self.seq} is not one of {', '.join(ROLES)}")
        tokens = (self.input_tokens, self.cached_tokens, self.output_tokens, self.thinking_tokens)
        if self.seq < 1 or min(*tokens, self.cost_micros) < 0:
            raise InvalidValue(f"message {self.seq}: numbers begin at 1, and counts at 0")


Line = SessionLine | TagLine | LinkLine | BranchLine | CoverLine | TurnLine | MessageLine
L = TypeVar("L", bound=Line)

_KINDS: Final[dict[str, type[Line]]] = {
    "session": SessionLine,
    "tag": TagLine,
    "link": LinkLine,
    "branch": BranchLine,
    "cover": CoverLine,
    "turn": TurnLine,
    "message": MessageLine,
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}
_INT_MAX: Final = 2**63 - 1
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def format_line(line: Line) -> str:
    """Return one line without a line break; fields with their default are left out."""
    record: dict[str, Any] = {"type": _NAMES[type(line)]}
    if isinstance(line, SessionLine):
        record["format"] = FORMAT
    for field in fields(line):
        value = getattr(line, field.name)
        if value != field.default:
            record[field.name] = value.to_dict() if isinstance(value, Source) else value
    if isinstance(line, MessageLine):
        record |= _readable(record.pop("body"))
    return _text(record)


def parse_line(text: str) -> Line:
    """Return the line that ``format_line`` wrote, or raise InvalidValue; ignore unknown fields of later versions."""
    try:
        record = loads(text)
    except (ValueError, RecursionError):
        record = None
    kind = _KINDS.get(str(record.get("type"))) if isinstance(record, dict) else None
    if kind is None:
        raise InvalidValue(f"{text[:80]!r} is not a line of an exported session")
    if kind is SessionLine and record.get("format") != FORMAT:
        raise InvalidValue(
            f"format {record.get('format')!r} of an exported session: this version reads {FORMAT}"
        )
    if "parts" in record:
        record["body"] = _stored(record["parts"])
    return _make(kind, record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """All lines of one session, consistent with each other."""

    session: SessionLine
    tags: tuple[TagLine, ...] = ()
    links: tuple[LinkLine, ...] = ()
    branches: tuple[BranchLine, ...] = ()
    covers: tuple[CoverLine, ...] = ()
    turns: tuple[TurnLine, ...] = ()
    messages: tuple[MessageLine, ...] = ()

    def __post_init__(self) -> None:
        known = self.known_branches(self.session.id)
        numbers = [branch.no for branch in known]
        for no in (*numbers, self.session.active_branch_no):
            # Raises for a parent that is missing or is the branch's own descendant.
            path(known, session_id=self.session.id, no=no)
        begins = {branch.no: branch.parent_seq for branch in known}
        places = {(message.branch_no, message.seq) for message in self.messages}
        turns = {turn.no for turn in self.turns}
        if len(places) < len(self.messages) or len(begins) < len(numbers) or len(turns) < len(self.turns):
            raise InvalidValue(f"session {self.session.id}: two of its lines have the same number")
        for message in self.messages:
            if message.seq <= begins.get(message.branch_no, _INT_MAX) or message.turn not in {None, *turns}:
                raise InvalidValue(
                    f"session {self.session.id}: the branch or turn of message {message.seq} is missing"
                )

    def known_branches(self, session_id: str) -> list[Branch]:
        """Return the branches of the session under the id ``session_id``, including the first branch."""
        known = [line.as_branch(session_id) for line in self.branches]
        if all(branch.no != 0 for branch in known):
            known.insert(0, Branch(session_id=session_id, no=0))
        return known


class ArchiveParser:
    """Assembles sessions from consecutive lines."""

    def __init__(self) -> None:
        self._lines: list[Line] = []

    def add(self, text: str) -> Archive | None:
        """Add a line. If the line begins another session, return the session before it. Ignore empty lines."""
        if not text.strip():
            return None
        line = parse_line(text)
        if isinstance(line, SessionLine):
            ended = self.end()
            self._lines = [line]
            return ended
        if not self._lines:
            raise InvalidValue(
                "an exported session begins with its session line; this text begins with another"
            )
        self._lines.append(line)
        return None

    def end(self) -> Archive | None:
        """Return the last session, or None if there is none."""
        lines, self._lines = self._lines, []
        if not lines:
            return None
        [session] = _of(SessionLine, lines)
        return Archive(
            session=session,
            tags=_of(TagLine, lines),
            links=_of(LinkLine, lines),
            branches=_of(BranchLine, lines),
            covers=_of(CoverLine, lines),
            turns=_of(TurnLine, lines),
            messages=_of(MessageLine, lines),
        )


def _of(kind: type[L], lines: list[Line]) -> tuple[L, ...]:
    return tuple(line for line in lines if isinstance(line, kind))


def _readable(body: str) -> dict[str, Any]:
    """Return the parts as readable JSON if this restores the same text; else, or if damaged, the stored text."""
    try:
        parts = loads(body)
        if "\\ud" not in body and _text(parts) == body:
            return {"parts": parts}
    except (ValueError, RecursionError):
        pass  # The text is damaged.
    return {"body": body}


def _stored(parts: Any) -> str:
    """Return parts as the message codec writes them: half a surrogate pair stays an escape."""
    text = _text(parts)
    return text if text.isascii() or not _SURROGATE.search(text) else dumps(parts, separators=(",", ":"))


def _text(value: Any) -> str:
    return dumps(value, ensure_ascii=False, separators=(",", ":"))


def _make(kind: type[Line], record: dict[str, Any]) -> Line:
    values = dict(_values(kind, record))
    try:
        return kind(**values)
    except TypeError:
        missing = [field.name for field in fields(kind) if field.name not in values]
        raise InvalidValue(
            f"a {_NAMES[kind]} line of an exported session lacks one of {', '.join(missing)}"
        ) from None


def _values(kind: type[Line], record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, wanted in _FIELDS[kind].items():
        value = record.get(name)
        if value is None:
            continue
        if wanted is Source:
            yield name, Source.from_dict(value if isinstance(value, dict) else {})
        elif (isinstance(value, int) and type(value) is wanted and -_INT_MAX <= value <= _INT_MAX) or (
            isinstance(value, str) and wanted is str
        ):
            yield name, value
        else:
            raise InvalidValue(f"{name} of a {_NAMES[kind]} line cannot be {_text(value)[:80]}")


def _wanted(hint: Any) -> type:
    """Return the JSON type of a field. Words of closed sets are text too; the line's constructor checks them."""
    return next((kind for kind in (Source, int) if kind in (hint, *get_args(hint))), str)


_FIELDS: Final[dict[type[Line], dict[str, type]]] = {
    kind: {name: _wanted(hint) for name, hint in get_type_hints(kind).items()} for kind in _NAMES
}
