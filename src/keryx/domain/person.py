"""People, their roles, and the accounts by which platforms know them.

Every row has an owning person. One user's several ids on a platform are resolved to one canonical id before
anything is keyed by it, and an id once used as canonical stays so, or one person would become two sessions.
"""

from collections.abc import Collection, Mapping
from typing import Literal, NewType, get_args

from keryx.clock import Micros
from keryx.domain.source import check_platform
from keryx.errors import InvalidValue
from keryx.values import dataclass

PersonId = NewType("PersonId", int)

Role = Literal["owner", "member", "guest"]
ROLES: tuple[Role, ...] = get_args(Role)
"""From the one who may do most to the one who may do least."""


def check_role(value: str) -> Role:
    """Return ``value`` if it is a role, else raise ``InvalidValue``."""
    if value not in ROLES:
        raise InvalidValue(f"role {value!r}: use one of {', '.join(ROLES)}")
    return value


def at_least(role: Role, least: Role) -> bool:
    """Say whether ``role`` includes what ``least`` may do."""
    return ROLES.index(role) <= ROLES.index(least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who may talk to the agent."""

    id: PersonId
    name: str
    role: Role
    blocked_at: Micros | None = None

    def __post_init__(self) -> None:
        check_role(self.role)
        if self.id < 1:
            raise InvalidValue(f"person id {self.id}: it counts from 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A user of a platform, by canonical id, and the person behind it."""

    platform: str
    account: str | None = None
    """Our account, where the platform's user ids mean something only beside it; else None."""
    user_id: str
    person_id: PersonId
    user_name: str | None = None

    def __post_init__(self) -> None:
        check_platform(self.platform)
        if not self.user_id:
            raise InvalidValue("user_id is empty: give the platform's id of the user")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedId:
    """The id to go by, and the alias to remember if one was learnt."""

    canonical: str
    learnt: tuple[str, str] | None = None
    """``(alias, canonical)``."""


def canonical_id(aliases: Mapping[str, str], given: str) -> str:
    """Return the id that ``given`` stands for, following ``aliases`` (alias to id) to their end.

    A circle, which only a broken import can make, has the least of its ids as its end, wherever it is entered.
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
    """Return the canonical id of what a platform reported as ``given`` and, in the same breath, as ``alt``.

    ``known`` holds the canonical ids that rows already use: somebody first met under the other id keeps it. Where
    both are in use, ``given`` wins, being the one the platform calls stable. Chat ids resolve the same way.
    """
    first = canonical_id(aliases, given)
    second = first if alt is None else canonical_id(aliases, alt)
    if first == second:
        return ResolvedId(canonical=first)
    if second in known and first not in known:
        return ResolvedId(canonical=second, learnt=(first, second))
    return ResolvedId(canonical=first, learnt=(second, first))
