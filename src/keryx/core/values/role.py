"""The roles of people."""

from typing import Literal, get_args

from keryx.errors import InvalidValue

Role = Literal["owner", "member", "guest"]
ROLES: tuple[Role, ...] = get_args(Role)
"""The role with most rights first."""


def check_role(value: str) -> Role:
    """Return ``value`` if it is a role, else raise ``InvalidValue``."""
    if value not in ROLES:
        raise InvalidValue(f"role {value!r}: use one of {', '.join(ROLES)}")
    return value


def at_least(role: Role, least: Role) -> bool:
    """Return whether ``role`` has all rights of ``least``."""
    return ROLES.index(role) <= ROLES.index(least)
