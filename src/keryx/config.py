"""Frozen settings, built from domain values; every one has a default that is right for one person on a laptop.

No I/O: ``config_load`` reads files and the environment and makes these.
"""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from keryx.domain.busy import BusyMode
from keryx.domain.prices import Price
from keryx.domain.reset import ResetPolicies
from keryx.domain.session_key import ScopeSettings
from keryx.domain.settings import Personality
from keryx.domain.source import Source
from keryx.domain.toolset import ToolsetSettings
from keryx.domain.turn import StepEffect
from keryx.values import dataclass

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
CommandFormat = Literal["text", "jsonl"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Where the webhook platform listens, and where its answers go."""

    enabled: bool = False
    host: str = "127.0.0.1"
    port: int = 8460
    callback: str | None = None
    secret: str | None = field(default=None, repr=False)
    """Signs both ways; None where none was given, and then the platform cannot start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsSettings:
    """Which models answer, and how their providers are reached."""

    default: str | None = None
    """As ``provider:name``; None where nobody chose one."""
    by_platform: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    fallbacks: tuple[str, ...] = ()
    """Who is asked in turn where the chosen one does not answer."""
    timeout_seconds: int = 120
    """How long a model may be silent."""
    context_tokens: int | None = None
    """How much a model reads and writes at most; None where that is known, or taken to be 128,000."""
    context_tokens_of: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """The same of single models."""
    titles: bool = True
    """Whether a model is asked what a young conversation is about."""
    prices: Mapping[str, Price] = field(default_factory=lambda: MappingProxyType({}))
    """What models cost, where the list that comes with the packages is wrong or knows nothing."""
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """The providers' own keys and addresses, from the environment and the profile's ``.env``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsSettings:
    """What tools may reach."""

    fetch_private: bool = False
    """Whether pages are fetched from private networks."""
    fetch_allow: tuple[str, ...] = ()
    """Hosts from which they are, wherever these are."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """The variables that commands see: none that looks like a secret, unless it was named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Who answers instead of a model: a program that speaks ACP, or one that is run for each turn; else nobody."""

    acp: tuple[str, ...] = ()
    """The command line of an ACP program."""
    command: tuple[str, ...] = ()
    """The command line of a program that answers one turn."""
    format: CommandFormat = "text"
    timeout_seconds: int = 600
    """How long a program that answers one turn may be silent."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """What such a program finds in its environment: ours without Keryx's own variables, and providers' variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerSettings:
    """One MCP server: a program that is started, or an address."""

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    toolset: str | None = None
    """The set its tools belong to; None for ``mcp-<name>``."""
    effects: Mapping[str, StepEffect] = field(default_factory=lambda: MappingProxyType({}))
    """What its tools do, by their own names, where the owner knows better than the server says."""
    timeout_seconds: int = 60
    """How long a call may take."""


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
    models: ModelsSettings
    agent: AgentSettings
    mcp_servers: tuple[McpServerSettings, ...]
    timezone: str
    workspace: Path | None
    """Where conversations work that name no folder; None for where Keryx was started."""
    tools: ToolsSettings
    prompt: PromptSettings
    turns_max: int
    log: LogSettings
    webhook: WebhookSettings
    rows: tuple[Explained, ...] = field(repr=False)

    @property
    def model(self) -> str | None:
        """The model that answers where nothing else is chosen."""
        return self.models.default

    @property
    def profile(self) -> str:
        """The isolated identity all of this belongs to."""
        return self.settings.profile

    @property
    def output_dir(self) -> Path:
        """Where output routed to ``local`` is kept."""
        return self.data_dir / "output"

    def explain(self) -> tuple[Explained, ...]:
        """Return every setting with its value and where that came from, in the order of the reference."""
        return self.rows

    def origin_of(self, name: str) -> str:
        """Return where a setting's value came from: a file and its line, a variable, or the default."""
        return next(row.origin for row in self.rows if row.name == name)
