"""People, their roles, and their user ids on platforms.

Every row has an owning person. If a user has several ids on a platform, they are resolved to one canonical id
before any use in a key. A canonical id stays canonical; otherwise one person would get two sessions.
"""

from collections.abc import Collection, Mapping
from typing import NewType

from keryx.clock import Micros
from keryx.core.values.role import Role, check_role
from keryx.errors import InvalidValue
from keryx.values import dataclass

PersonId = NewType("PersonId", int)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person who may talk to the agent."""

    id: PersonId
    name: str
    role: Role
    blocked_at: Micros | None = None

    def __post_init__(self) -> None:
        check_role(self.role)
        if self.id < 1:
            raise InvalidValue(f"person id {self.id}: ids start at 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedId:
    """The canonical id, and the new alias to store, if any."""

    canonical: str
    learnt: tuple[str, str] | None = None
    """``(alias, canonical)``."""


def canonical_id(aliases: Mapping[str, str], given: str) -> str:
    """Return the canonical id of ``given``, following ``aliases`` (alias to id) to the end.

    Only a broken import can make a cycle. The canonical id of a cycle is its least id, whichever id is given.
    """
    walked = [given]
    while (target := aliases.get(walked[-1], walked[-1])) != walked[-1]:
        if target in walked:
            return min(walked[walked.index(target) :])
        walked.append(target)
    return walked[-1]


def resolve_id(
    aliases: Mapping[str, str], given: str, *, alt: str | None, known: Collection[str]
) -> ResolvedId:
    """Return the canonical id of a user whom a platform reported as ``given`` and at the same time as ``alt``.

    ``known`` contains the canonical ids that rows already use: a user first seen under ``alt`` keeps it. If both are in
    use, ``given`` wins, because the platform calls it stable. Chat ids are resolved the same way.
    """
    first = canonical_id(aliases, given)
    second = first if alt is None else canonical_id(aliases, alt)
    if first == second:
        return ResolvedId(canonical=first)
    if second in known and first not in known:
        return ResolvedId(canonical=second, learnt=(first, second))
    return ResolvedId(canonical=first, learnt=(second, first))
