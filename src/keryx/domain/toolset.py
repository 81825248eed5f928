"""Which tools an agent is given: named sets of them, by the role of whom it speaks with and the platform that is on.

What the owner granted in the store decides over the configuration, and that over what holds without both. Nothing
that reaches a shell, the owner's files or a program of others is given on a messaging platform unless named there.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final

from keryx.domain.access import OWN_SURFACES, Grant, granted
from keryx.domain.person import Role, check_role
from keryx.domain.source import check_platform
from keryx.errors import InvalidValue
from keryx.values import dataclass

ALL: Final = "all"
"""Every set, but on a messaging platform not the terminal, not the files and no tools of MCP servers."""
STATE: Final = "state"
"""Tools that read the person's own conversations, schedules and processes."""
MEMORY: Final = "memory"
"""Tools that keep notes for later conversations."""
TERMINAL: Final = "terminal"
"""Tools that reach a shell."""
FILES: Final = "files"
"""Tools that read and write files in the workspace."""
WEB: Final = "web"
"""Tools that read pages of others."""
RESULTS: Final = "results"
"""Tools that read on in a long result: given where anything else is."""
TALK: Final = "talk"
"""Tools by which the agent asks the person, or tells them something in another chat."""
PLAN: Final = "plan"
"""Tools that make and change the person's own schedules."""
REPORTED: Final = "reported"
"""What an agent that uses tools of its own did: everybody's agent may tell of it."""
GENERAL: Final = "general"
"""Tools that name no set of their own."""

DEFAULTS: Final[Mapping[Role, frozenset[str]]] = MappingProxyType(
    {"owner": frozenset({ALL}), "member": frozenset({STATE, MEMORY, TALK, PLAN}), "guest": frozenset()}
)

_AT_HOME: Final = frozenset({TERMINAL, FILES})

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetSettings:
    """The sets each role is given, everywhere or on one platform, which wins; what is not set is ``DEFAULTS``."""

    by_role: Mapping[Role, frozenset[str]] = field(default_factory=dict)
    by_platform_and_role: Mapping[tuple[str, Role], frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for role in self.by_role:
            check_role(role)
        for platform, role in self.by_platform_and_role:
            check_platform(platform)
            check_role(role)
        for named in (*self.by_role.values(), *self.by_platform_and_role.values()):
            for name in named:
                check_toolset(name)
        for mapping in ("by_role", "by_platform_and_role"):
            # A copy nobody else holds: the value cannot change after it was checked.
            object.__setattr__(self, mapping, MappingProxyType(dict(getattr(self, mapping))))

    def given(self, *, role: Role, platform: str) -> frozenset[str]:
        """Return the sets a role is given on a platform."""
        everywhere = self.by_role.get(role, DEFAULTS[role])
        return self.by_platform_and_role.get((platform, role), everywhere)


def may_use_toolset(
    settings: ToolsetSettings,
    grants: Iterable[Grant],
    *,
    role: Role,
    platform: str,
    toolset: str,
    is_foreign: bool = False,
) -> bool:
    """Say whether the agent of somebody of ``role``, speaking on ``platform``, is given a tool of a set.

    A foreign tool is one of a program that is not Keryx's: nobody here knows what it reaches.
    """
    verdict = granted(grants, role=role, platform=platform, kind="toolset", name=toolset)
    if verdict is not None:
        return verdict
    given = settings.given(role=role, platform=platform)
    reaches_home = (is_foreign or toolset in _AT_HOME) and platform not in OWN_SURFACES
    return toolset in given or (ALL in given and not reaches_home)


def check_toolset(name: str) -> str:
    """Return the name of a set of tools, or raise ``InvalidValue``."""
    if not _NAME.fullmatch(name):
        raise InvalidValue(
            f"toolset {name[:40]!r}: use a letter, then at most 31 lower-case letters, digits, '-' and '_'"
        )
    return name
