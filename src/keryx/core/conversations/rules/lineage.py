"""Typed links between sessions: which session came from which.

A link is a record for people and tools; no code follows links by itself.
"""

from typing import Final, Literal, get_args

from keryx.clock import Micros
from keryx.errors import InvalidValue
from keryx.values import dataclass

LinkKind = Literal["reset", "fork", "delegation", "import"]
LINK_KINDS: Final[tuple[LinkKind, ...]] = get_args(LinkKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLink:
    """``to_session_id`` came from ``from_session_id``, or an import made it from ``origin`` in another program."""

    kind: LinkKind
    to_session_id: str
    from_session_id: str | None = None
    at_seq: int | None = None
    origin: str | None = None
    created_at: Micros

    def __post_init__(self) -> None:
        if self.kind not in LINK_KINDS:
            raise InvalidValue(f"link kind {self.kind!r} is not one of {', '.join(LINK_KINDS)}")
        if self.from_session_id == self.to_session_id:
            raise InvalidValue(f"session {self.to_session_id} cannot be linked to itself")
        if self.kind == "import":
            if not self.origin:
                raise InvalidValue(
                    "an import link names its origin (program and id), so that a second import finds it"
                )
        elif self.from_session_id is None:
            raise InvalidValue(f"a {self.kind} link names the session it comes from")
        if self.kind == "fork" and (self.at_seq is None or self.at_seq < 0):
            raise InvalidValue("a fork link names the last message that both sessions share, or 0")
