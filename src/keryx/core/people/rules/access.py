"""Decide who may speak, what each person may do, and who may see what.

Everything fails closed: an unlisted platform is a messaging platform, an unknown person is a stranger, and of two
equally specific grants the one that denies wins.
"""

from collections.abc import Iterable
from typing import Literal, NewType, get_args

from keryx.clock import HOUR, Micros
from keryx.core.conversations.rules.session_key import escape_part, format_surface
from keryx.core.conversations.rules.source import ChatType, Source, check_platform
from keryx.core.people.rules.person import Person, PersonId
from keryx.core.values.role import Role, at_least, check_role
from keryx.errors import InvalidValue
from keryx.ids import PAIRING_ALPHABET
from keryx.values import dataclass

RefusalReason = Literal["stranger", "blocked"]
GrantKind = Literal["command", "toolset", "process"]
PairingCode = NewType("PairingCode", str)
PairingRefusal = Literal["locked", "too_many_pending"]
AudienceKey = NewType("AudienceKey", str)

PAIRING_CODE_LENGTH = 8
PAIRING_LIFETIME: Micros = HOUR
PAIRING_PENDING_MAX = 3
PAIRING_TRIES_MAX = 5
PAIRING_LOCK: Micros = HOUR

EVERY = "*"
"""In a grant: every name of the grant's kind."""
OWN_SURFACES = frozenset({"local", "web", "api"})
"""The platforms whose users have signed in to Keryx itself; all other platforms are messaging platforms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The author may speak as this person."""

    person: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The author gets no answer, or a pairing code if ``offer_pairing``."""

    reason: RefusalReason
    offer_pairing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A right that the owner gave to, or took from, a role: by platform (None: all) and name (``*``: every)."""

    role: Role
    kind: GrantKind
    name: str
    platform: str | None = None
    allow: bool = True

    def __post_init__(self) -> None:
        check_role(self.role)
        if self.platform is not None:
            check_platform(self.platform)
        if self.kind not in get_args(GrantKind):
            raise InvalidValue(f"grant of {self.kind!r}: use one of {', '.join(get_args(GrantKind))}")
        if not self.name:
            raise InvalidValue(f"grant of a {self.kind} without a name: name one, or '*' for every one")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingTries:
    """The number of wrong codes that an author has entered, and the end of the lock, if any."""

    wrong: int = 0
    locked_until: Micros | None = None


def may_speak(person: Person | None, *, chat_type: ChatType, pairing: bool) -> Allowed | Refused:
    """Return whether an author may speak; ``person`` is None for a stranger, ``pairing`` is the owner's setting.

    A code is offered only in a direct message: in a group all members would read it.
    """
    if person is None:
        return Refused(reason="stranger", offer_pairing=pairing and chat_type == "dm")
    if person.blocked_at is not None:
        return Refused(reason="blocked", offer_pairing=False)
    return Allowed(person=person)


def may_use_command(
    grants: Iterable[Grant], *, role: Role, platform: str, name: str, least: Role = "member"
) -> bool:
    """Return whether a person with ``role``, speaking on ``platform``, may use a command.

    The most specific grant decides, and without a grant the role ``least``. The owner cannot be locked out.
    """
    if role == "owner":
        return True
    verdict = granted(grants, role=role, platform=platform, kind="command", name=name)
    return at_least(role, least) if verdict is None else verdict


def granted(grants: Iterable[Grant], *, role: Role, platform: str, kind: GrantKind, name: str) -> bool | None:
    """Return the verdict of the most specific grant, or None if no grant applies."""
    matching = [
        grant
        for grant in grants
        if (grant.role, grant.kind) == (role, kind)
        and grant.platform in (None, platform)
        and grant.name in (EVERY, name)
    ]
    if not matching:
        return None
    most = max(map(_specificity, matching))
    return all(grant.allow for grant in matching if _specificity(grant) == most)


def _specificity(grant: Grant) -> int:
    return (grant.platform is not None) + (grant.name != EVERY)


def parse_pairing_code(text: str) -> PairingCode:
    """Return the code in ``text``, or raise ``InvalidValue``; ignore case, spaces and hyphens."""
    code = "".join(text.replace("-", " ").split()).upper()
    if len(code) != PAIRING_CODE_LENGTH or not set(code) <= set(PAIRING_ALPHABET):
        raise InvalidValue(
            f"code {text[:40]!r}: it has {PAIRING_CODE_LENGTH} characters, letters but no I, L and O, "
            "and digits but no 0 and 1"
        )
    return PairingCode(code)


def pairing_refused(*, pending: int, tries: PairingTries, now: Micros) -> PairingRefusal | None:
    """Return why no further code is issued, or None if one may be; ``pending`` counts unexpired requests."""
    if pairing_locked(tries, now=now):
        return "locked"
    return "too_many_pending" if pending >= PAIRING_PENDING_MAX else None


def pairing_locked(tries: PairingTries, *, now: Micros) -> bool:
    """Return whether codes are ignored now, because of too many wrong ones."""
    return tries.locked_until is not None and now < tries.locked_until


def after_wrong_code(tries: PairingTries, *, now: Micros) -> PairingTries:
    """Return the tries after one more wrong code; the fifth locks for an hour, then the count restarts.

    A wrong code during the lock does not prolong it.
    """
    if pairing_locked(tries, now=now):
        return tries
    if tries.wrong + 1 >= PAIRING_TRIES_MAX:
        return PairingTries(locked_until=now + PAIRING_LOCK)
    return PairingTries(wrong=tries.wrong + 1)


def audience_of(source: Source, person_id: PersonId) -> AudienceKey:
    """Return the audience of messages at ``source``: the person in a direct message, else all members of the chat.

    The whole chat reads a thread, and a conversation that is scoped to one user of a group.
    """
    if source.chat_type == "dm":
        return AudienceKey(f"person:{person_id}")
    return AudienceKey(
        f"chat:{format_surface(source.platform, source.account)}:{escape_part(source.chat_id)}"
    )
