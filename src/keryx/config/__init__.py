"""Frozen settings, with defaults for one person on a laptop.

No I/O: ``config_load`` reads files and the environment and creates the settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from keryx.config.setting import PREFIX, Setting, Values
from keryx.core.conversations.rules.session_key import ScopeSettings
from keryx.core.conversations.rules.session_settings import Personality
from keryx.core.conversations.rules.source import Source
from keryx.core.people.rules.toolset import ToolsetSettings
from keryx.core.turns.rules.busy import BusyMode
from keryx.core.turns.rules.reset import ResetPolicies
from keryx.values import dataclass

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]

DEFAULT_AGENT = "model"
DEFAULT_BACKEND = "local"
TURNS_MAX = 64
WELCOME = "Hello! I keep our conversation, on every platform. /help shows what I can do."


@dataclass(frozen=True, slots=True, kw_only=True)
class BusySettings:
    """The busy mode for messages that arrive while a turn runs: of a chat, a platform, or all others."""

    default: BusyMode = "queue"
    by_place: Mapping[tuple[str, str | None], BusyMode] = field(default_factory=lambda: MappingProxyType({}))
    """By platform and chat, or by platform (chat None)."""

    def mode_for(self, source: Source) -> BusyMode:
        """Return the mode of a chat."""
        of_platform = self.by_place.get((source.platform, None), self.default)
        return self.by_place.get((source.platform, source.chat_id), of_platform)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """The names of the agents that answer in conversations without a model of their own."""

    default: str = "the configured model"
    by_platform: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    takes_models: bool = True
    """Whether a conversation can choose a model. A program that answers as agent has its own models."""

    def on(self, platform: str) -> str:
        """Return the name of the agent on a platform."""
        return self.by_platform.get(platform, self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the session layer."""

    profile: str = "main"
    scope: ScopeSettings = field(default_factory=ScopeSettings)
    reset: ResetPolicies = field(default_factory=ResetPolicies)
    busy: BusySettings = field(default_factory=BusySettings)
    first_accounts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The first bot of each platform. Its session keys do not contain the account."""
    platforms: frozenset[str] | None = None
    """The installed platforms, which are the valid names of platforms; None if any name is valid."""
    pairing_platforms: frozenset[str] = frozenset()
    """The platforms on which strangers may ask for access."""
    welcome: str | None = WELCOME
    personalities: Mapping[str, Personality] = field(default_factory=lambda: MappingProxyType({}))
    toolsets: ToolsetSettings = field(default_factory=ToolsetSettings)
    id_salt: str | None = field(default=None, repr=False)
    """The salt with which the ids of users are hashed in prompts; None if prompts contain the ids themselves."""
    answering: Answering = field(default_factory=Answering)
    """Set when the system is built."""
    titles: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The level and format of the log."""

    level: LogLevel = "info"
    format: LogFormat = "text"


class Explained(NamedTuple):
    """A setting as people see it: for a secret, ``value`` says only whether it is set."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFolders:
    """The folders and files of one profile, which need not exist."""

    profile: str
    config_dir: Path
    data_dir: Path

    @property
    def user_file(self) -> Path:
        """The file of the owner's settings."""
        return self.config_dir / "config.yaml"

    @property
    def secrets_file(self) -> Path:
        """The file of the owner's secrets."""
        return self.config_dir / ".env"

    @property
    def output_dir(self) -> Path:
        """The folder for output that is routed to ``local``."""
        return self.data_dir / "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration(ProfileFolders):
    """The configuration of one profile, read once at the start."""

    settings: Settings
    project_file: Path | None
    database: str = field(repr=False)
    """A path or an address, which may contain a password."""
    timezone: str
    workspace: Path | None
    """The workspace of conversations without their own; None for the folder in which Keryx started."""
    turns_max: int
    log: LogSettings
    values: Values
    environ: Mapping[str, str] = field(repr=False)
    variables: Mapping[str, str] = field(repr=False)
    """All variables of the environment and of the profile's ``.env``."""
    rows: tuple[Explained, ...] = field(repr=False)
    """Every setting with its value and origin, in the order of the reference."""
    plugins: "Plugins"
    command: str = "keryx"
    """How Keryx was started, for commands that people are told to run."""

    @property
    def foreign_variables(self) -> Mapping[str, str]:
        """The variables that are not Keryx's own."""
        return MappingProxyType({k: v for k, v in self.variables.items() if not k.startswith(PREFIX)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """The part of a plug-in that all kinds share."""

    settings: tuple[Setting[Any], ...] = ()
    check: Callable[[Configuration], object] = lambda _: None
    """Raises ``InvalidValue`` with every problem, one per line, if its settings do not fit together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    """The plug-ins that a configuration uses, by name."""

    platforms: Mapping[str, Plugin]
    agents: Mapping[str, Plugin]
    """The default agent, and the agent that answers."""
    agent: str
    """The agent that answers."""
    tools: Mapping[str, Plugin]
    backend: Plugin
