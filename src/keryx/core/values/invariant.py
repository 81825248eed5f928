"""How a subject states what must hold in its rows, and how a breach of that is told.

An invariant is a statement of the subject's views that lists the rows that break it: the session, if the row is in
one, and what the row is about.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from keryx.values import dataclass

Rule = Literal["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9"]

Checks: TypeAlias = Mapping[str, tuple[Rule, str]]
"""By statement: the rule it is about, and what one of its rows means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A promise that the rows contradict: which one, in which session, and how."""

    rule: Rule
    session_id: str | None
    what: str
