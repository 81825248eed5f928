"""Frozen settings. Each has a default that is right for one person on a laptop.

No I/O: ``config_load`` reads files and the environment and makes these.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from keryx.config.setting import PREFIX, Setting
from keryx.config.values import Values
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
    """What a message does that arrives while a turn runs: per chat, per platform, else everywhere."""

    default: BusyMode = "queue"
    by_platform: Mapping[str, BusyMode] = field(default_factory=lambda: MappingProxyType({}))
    by_chat: Mapping[tuple[str, str], BusyMode] = field(default_factory=lambda: MappingProxyType({}))

    def mode_for(self, source: Source) -> BusyMode:
        """Return the mode of a chat."""
        by_platform = self.by_platform.get(source.platform, self.default)
        return self.by_chat.get((source.platform, source.chat_id), by_platform)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Who answers where a conversation chose nobody, as people are told."""

    default: str = "the configured model"
    by_platform: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    takes_models: bool = True
    """Whether a conversation can choose a model; a program that answers has its own."""

    def on(self, platform: str) -> str:
        """Return who answers on a platform."""
        return self.by_platform.get(platform, self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the session layer decides by."""

    profile: str = "main"
    scope: ScopeSettings = field(default_factory=ScopeSettings)
    reset: ResetPolicies = field(default_factory=ResetPolicies)
    busy: BusySettings = field(default_factory=BusySettings)
    first_accounts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The first bot of each platform, whose keys carry no account."""
    platforms: frozenset[str] | None = None
    """The installed platforms, which are all that people may name; None where any name will do."""
    pairing_platforms: frozenset[str] = frozenset()
    """Where strangers may ask to be let in."""
    welcome: str | None = WELCOME
    personalities: Mapping[str, Personality] = field(default_factory=lambda: MappingProxyType({}))
    """What ``/personality`` may choose from, by name."""
    toolsets: ToolsetSettings = field(default_factory=ToolsetSettings)
    """Which tools the agent is given, by role and platform."""
    id_salt: str | None = field(default=None, repr=False)
    """With it, the agent is told stand-ins for the ids of users; ``prompt.hash_user_ids`` decides."""
    answering: Answering = field(default_factory=Answering)
    """Known once everything is put together."""
    titles: bool = False
    """Whether models are asked for titles; ``models.titles`` decides, and a program that asks for none has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    """What the agent is not told about who speaks."""

    hash_user_ids: bool = False
    id_salt: str | None = field(default=None, repr=False)
    """Where none was given, the profile keeps its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What is logged, and in which shape."""

    level: LogLevel = "info"
    format: LogFormat = "text"


class Explained(NamedTuple):
    """One setting as people see it: a secret's value is only whether it is set."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Everything one profile runs with, read once at the start."""

    settings: Settings
    config_dir: Path
    data_dir: Path
    user_file: Path
    """The owner's file, whether it is there or not."""
    project_file: Path | None
    database: str = field(repr=False)
    """A path or an address; it may hold a password."""
    timezone: str
    workspace: Path | None
    """Where conversations work that name no folder; None for where Keryx was started."""
    prompt: PromptSettings
    turns_max: int
    log: LogSettings
    values: Values
    """Of every setting, those of plug-ins included."""
    environ: Mapping[str, str] = field(repr=False)
    """The environment of the process."""
    variables: Mapping[str, str] = field(repr=False)
    """Every variable that is set, in the environment or the profile's ``.env``."""
    rows: tuple[Explained, ...] = field(repr=False)
    plugins: "Plugins"

    @property
    def secrets_file(self) -> Path:
        """The owner's secrets, whether the file is there or not."""
        return self.config_dir / ".env"

    @property
    def profile(self) -> str:
        """The isolated identity all of this belongs to."""
        return self.settings.profile

    @property
    def output_dir(self) -> Path:
        """Where output routed to ``local`` is kept."""
        return self.data_dir / "output"

    @property
    def foreign_variables(self) -> Mapping[str, str]:
        """The variables that are none of Keryx's own."""
        return MappingProxyType({k: v for k, v in self.variables.items() if not k.startswith(PREFIX)})

    def explain(self) -> tuple[Explained, ...]:
        """Return every setting with its value and where that came from, in the order of the reference."""
        return self.rows

    def origin_of(self, name: str) -> str:
        """Return where a setting's value came from: a file and its line, a variable, or the default."""
        return next(row.origin for row in self.rows if row.name == name)


def _agree(_: Configuration) -> None:
    """Find nothing wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """What every kind of plug-in brings to the configuration."""

    settings: tuple[Setting[Any], ...] = ()
    """Its rows of the table of settings."""
    check: Callable[[Configuration], object] = _agree
    """Raises ``InvalidValue`` with every problem, a line each, where its settings do not fit together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    """The plug-ins a configuration uses, by their names."""

    platforms: Mapping[str, Plugin]
    agents: Mapping[str, Plugin]
    """The default agent, and the one that answers."""
    agent: str
    """The one that answers."""
    tools: Mapping[str, Plugin]
    backend: Plugin
