"""Decide which toolsets an agent gets, by the role of its person and the platform of the message.

The owner's grants in the store override the configuration, and the configuration overrides the defaults. On a
messaging platform, a tool that reaches a shell, the owner's files or a foreign program is given only if named.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final

from keryx.core.conversations.rules.source import check_platform
from keryx.core.people.rules.access import OWN_SURFACES, Grant, granted
from keryx.core.values.role import Role, check_role
from keryx.errors import InvalidValue
from keryx.values import dataclass

ALL: Final = "all"
"""Every toolset, except on a messaging platform: there without terminal, files and tools of MCP servers."""
STATE: Final = "state"
"""Tools that read the person's own conversations, schedules and processes."""
MEMORY: Final = "memory"
"""Tools that store notes for later conversations."""
TERMINAL: Final = "terminal"
"""Tools that reach a shell."""
FILES: Final = "files"
"""Tools that read and write files in the workspace."""
WEB: Final = "web"
"""Tools that read web pages."""
RESULTS: Final = "results"
"""Tools that read the rest of a long result: given together with any other tool."""
MESSAGING: Final = "talk"
"""Tools by which the agent asks the person, or sends a message to another chat."""
PLAN: Final = "plan"
"""Tools that create and change the person's own schedules."""
AGENT_REPORTS: Final = "reported"
"""Reports of an agent about its own tools: every agent may make them."""
GENERAL: Final = "general"
"""Tools that name no toolset."""

DEFAULTS: Final[Mapping[Role, frozenset[str]]] = MappingProxyType(
    {"owner": frozenset({ALL}), "member": frozenset({STATE, MEMORY, MESSAGING, PLAN}), "guest": frozenset()}
)

_AT_HOME: Final = frozenset({TERMINAL, FILES})

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetSettings:
    """The toolsets of each role, everywhere or on one platform, which wins; a missing role gets its ``DEFAULTS``."""

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
            # Store a private copy: the checked value cannot change later.
            object.__setattr__(self, mapping, MappingProxyType(dict(getattr(self, mapping))))

    def given(self, *, role: Role, platform: str) -> frozenset[str]:
        """Return the toolsets of a role on a platform."""
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
    """Return whether an agent gets a tool of ``toolset`` if its person has ``role`` and speaks on ``platform``.

    A foreign tool belongs to a program that is not part of Keryx: its reach is unknown.
    """
    verdict = granted(grants, role=role, platform=platform, kind="toolset", name=toolset)
    if verdict is not None:
        return verdict
    given = settings.given(role=role, platform=platform)
    reaches_home = (is_foreign or toolset in _AT_HOME) and platform not in OWN_SURFACES
    return toolset in given or (ALL in given and not reaches_home)


def check_toolset(name: str) -> str:
    """Return ``name`` if it is a valid name of a toolset, else raise ``InvalidValue``."""
    if not _NAME.fullmatch(name):
        raise InvalidValue(
            f"toolset {name[:40]!r}: use a letter, then at most 31 lower-case letters, digits, '-' and '_'"
        )
    return name
