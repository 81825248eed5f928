"""Frozen settings, built from domain values; every one has a default that is right for one person on a laptop.

No I/O: ``config_load`` reads files and the environment and makes these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from keryx.domain.busy import BusyMode
from keryx.domain.reset import ResetPolicies
from keryx.domain.session_key import ScopeSettings
from keryx.domain.source import Source

WELCOME = "Hello! I keep our conversation, on every platform. /help shows what I can do."


@dataclass(frozen=True, slots=True, kw_only=True)
class BusySettings:
    """What a message does that arrives while a turn runs: per chat, per platform, else everywhere."""

    default: BusyMode = "queue"
    by_platform: Mapping[str, BusyMode] = field(default_factory=lambda: MappingProxyType({}))
    by_chat: Mapping[tuple[str, str], BusyMode] = field(default_factory=lambda: MappingProxyType({}))

    def mode_for(self, source: Source) -> BusyMode:
        """Return the mode of a chat."""
        by_platform = self.by_platform.get(source.platform, self.default)
        return self.by_chat.get((source.platform, source.chat_id), by_platform)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the session layer decides by."""

    profile: str = "main"
    scope: ScopeSettings = field(default_factory=ScopeSettings)
    reset: ResetPolicies = field(default_factory=ResetPolicies)
    busy: BusySettings = field(default_factory=BusySettings)
    first_accounts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The first bot of each platform, whose keys carry no account."""
    pairing_platforms: frozenset[str] = frozenset()
    """Where strangers may ask to be let in."""
    welcome: str | None = WELCOME
