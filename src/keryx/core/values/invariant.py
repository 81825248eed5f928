"""The invariants of a subject, and their breaches.

An invariant is a statement of the subject's views that lists the rows that break it. Each row has the session, or
NULL, and a text for the message.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from keryx.values import dataclass

Rule = Literal["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9"]

Checks: TypeAlias = Mapping[str, tuple[Rule, str]]
"""The rule and the message of each statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A breach of a rule: the rule, the session and a message."""

    rule: Rule
    session_id: str | None
    what: str
