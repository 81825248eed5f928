"""The one table of settings: name, how the value is read, default, where it may be written, and a line of help.

A part of a name in angle brackets is chosen by the owner. ``docs/reference/config.md`` follows this table; a test
compares them.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeAlias, get_args

from keryx.config import TURNS_MAX, WELCOME, LogFormat, LogLevel, LogSettings, ModelsSettings, WebhookSettings
from keryx.config_load import program_rows, readers, tool_rows
from keryx.config_load.readers import Reader, one_of, optional, whole
from keryx.config_load.setting import PREFIX, Setting
from keryx.domain.busy import BUSY_MODES, BusyMode
from keryx.domain.prices import Price
from keryx.domain.reset import IDLE_MINUTES_MAX, ResetMode, ResetPolicy
from keryx.domain.session_key import DmScope, GroupScope, ScopeSettings, ThreadScope
from keryx.domain.source import check_known_platform
from keryx.errors import InvalidValue
from keryx.values import dataclass

_RESET = ResetPolicy()
_SCOPE = ScopeSettings()
_LOG = LogSettings()
_MODELS = ModelsSettings()
_WEBHOOK = WebhookSettings()
_HOUR = whole(0, 23)
_IDLE = whole(1, IDLE_MINUTES_MAX)
_MODE: Reader[ResetMode] = one_of(get_args(ResetMode))

PROFILE = Setting(
    name="profile",
    read=readers.text,
    default="main",
    place="environment",
    help="The isolated identity: its own configuration, secrets, data and output.",
)
DATABASE = Setting(
    name="database",
    read=optional(readers.store_address),
    default=None,
    place="own",
    is_path=True,
    shown=readers.without_password,
    help="The store: a path, `sqlite:///path` or `postgresql://…`; else `keryx.db` in the data folder.",
)
MODEL = Setting(
    name="model",
    read=optional(readers.model_name),
    default=None,
    help="The model that answers, as `provider:name`; where none is set, the built-in guide does.",
)
MODELS_ON: Setting[str | None] = Setting(
    name="models.on.<platform>",
    read=optional(readers.model_name),
    default=None,
    chosen=check_known_platform,
    help="The model that answers on a platform.",
)
MODELS_FALLBACKS: Setting[tuple[str, ...]] = Setting(
    name="models.fallbacks",
    read=readers.model_names,
    default=(),
    help="The models that are asked in turn where the chosen one does not answer; a list.",
)
MODELS_TIMEOUT = Setting(
    name="models.timeout_seconds",
    read=whole(1, 3_600),
    default=_MODELS.timeout_seconds,
    help="How long a model may be silent, before its first word and after any other.",
)
MODELS_CONTEXT = Setting(
    name="models.context_tokens",
    read=optional(whole(1_000, 100_000_000)),
    default=_MODELS.context_tokens,
    help="How many tokens a model reads and writes at most; `none` for what is known of it, else 128,000.",
)
MODELS_CONTEXT_OF: Setting[int | None] = Setting(
    name="models.context_tokens_of.<model>",
    read=whole(1_000, 100_000_000),
    default=None,
    chosen=readers.model_name,
    help="The same of one model, written `provider:name`, which wins.",
)
MODELS_TITLES = Setting(
    name="models.titles",
    read=readers.flag,
    default=_MODELS.titles,
    help="Whether the model that answers is asked for a title after the first exchange; a person's own stays.",
)
MODELS_PRICES: Setting[Price | None] = Setting(
    name="models.prices.<model>",
    read=readers.price,
    default=None,
    chosen=readers.model_name,
    help="What a million tokens of a model cost in dollars: input, output; or input, cached input, output; a list.",
)
TIMEZONE = Setting(
    name="timezone", read=readers.zone, default=_RESET.zone, help="The IANA time zone of hours and dates."
)
WORKSPACE = Setting(
    name="workspace",
    read=optional(readers.text),
    default=None,
    is_path=True,
    help="The folder that tools work in where a conversation names none; else where Keryx was started.",
)
WELCOME_TEXT: Setting[str | None] = Setting(
    name="welcome",
    read=optional(readers.text),
    default=WELCOME,
    help="What a person is told once, at the first message ever; `none` for nothing.",
)
SCOPE_DM: Setting[DmScope] = Setting(
    name="scope.dm",
    read=one_of(get_args(DmScope)),
    default=_SCOPE.dm,
    help="What shares a conversation in direct messages: `chat`, `platform` or `person`.",
)
SCOPE_GROUP: Setting[GroupScope] = Setting(
    name="scope.group",
    read=one_of(get_args(GroupScope)),
    default=_SCOPE.group,
    help="What shares a conversation in groups: `chat`, or `user` for one each.",
)
SCOPE_THREAD: Setting[ThreadScope] = Setting(
    name="scope.thread",
    read=one_of(get_args(ThreadScope)),
    default=_SCOPE.thread,
    help="What shares a conversation in threads: `shared`, or `user` for one each.",
)
RESET_MODE = Setting(
    name="reset.mode",
    read=_MODE,
    default=_RESET.mode,
    help="When a conversation starts over: `none`, `idle`, `daily` or `both`.",
)
RESET_IDLE = Setting(
    name="reset.idle_minutes",
    read=_IDLE,
    default=_RESET.idle_minutes,
    help="How long it must be quiet, for `idle` and `both`.",
)
RESET_HOUR = Setting(
    name="reset.at_hour",
    read=_HOUR,
    default=_RESET.at_hour,
    help="The hour from 0 to 23, in `timezone`, for `daily` and `both`.",
)
RESET_ON_MODE: Setting[ResetMode | None] = Setting(
    name="reset.on.<where>.mode",
    read=_MODE,
    default=None,
    chosen=readers.reset_place,
    help="The mode on a platform, in a chat type, or in `platform:chat type`, which wins.",
)
RESET_ON_IDLE: Setting[int | None] = Setting(
    name="reset.on.<where>.idle_minutes",
    read=_IDLE,
    default=None,
    chosen=readers.reset_place,
    help="The quiet time there; else that of `reset`.",
)
RESET_ON_HOUR: Setting[int | None] = Setting(
    name="reset.on.<where>.at_hour",
    read=_HOUR,
    default=None,
    chosen=readers.reset_place,
    help="The hour there; else that of `reset`.",
)
BUSY_MODE: Setting[BusyMode] = Setting(
    name="busy.mode",
    read=one_of(BUSY_MODES),
    default="queue",
    help=(
        "What a message does while a turn runs: `queue`, `steer`, `interrupt`, `collect` or `rollback`. "
        "In a group, a turn answers one person: others' messages wait for turns of their own."
    ),
)
BUSY_ON: Setting[BusyMode | None] = Setting(
    name="busy.on.<where>",
    read=one_of(BUSY_MODES),
    default=None,
    chosen=readers.busy_place,
    help="The same on a platform, or in one chat, written `platform:chat id`.",
)
PAIRING: Setting[tuple[str, ...]] = Setting(
    name="pairing",
    read=readers.platforms,
    default=(),
    place="own",
    help="The platforms on which strangers may ask to be let in; a list.",
)
TOOLSETS: Setting[tuple[str, ...] | None] = Setting(
    name="toolsets.<who>",
    read=readers.toolsets,
    default=None,
    place="own",
    chosen=readers.toolset_place,
    help="The sets of tools the agent is given for a role, or for `platform:role`, which wins; a list.",
)
PERSONALITY = Setting(
    name="personalities.<name>",
    read=optional(readers.text),
    default=None,
    chosen=readers.personality_name,
    help="The text the agent gets where `/personality` chose this name.",
)
HASH_USER_IDS = Setting(
    name="prompt.hash_user_ids",
    read=readers.flag,
    default=False,
    place="own",
    help="Whether the agent is told a stand-in for the ids of users instead of the ids themselves.",
)
ID_SALT = Setting(
    name="prompt.id_salt",
    read=optional(readers.text),
    default=None,
    place="secret",
    help="What the stand-ins are made with; else a file of the profile. Gateways on several machines share one.",
)
TURNS = Setting(
    name="turns_max",
    read=whole(1, 10_000),
    default=TURNS_MAX,
    help="How many turns one gateway runs at the same time.",
)
LOG_LEVEL: Setting[LogLevel] = Setting(
    name="log.level",
    read=one_of(get_args(LogLevel)),
    default=_LOG.level,
    help="The least that is logged: `debug`, `info`, `warning` or `error`.",
)
LOG_FORMAT: Setting[LogFormat] = Setting(
    name="log.format",
    read=one_of(get_args(LogFormat)),
    default=_LOG.format,
    help="`text` for people or `json`, an object a line, for programs.",
)
WEBHOOK_ENABLED = Setting(
    name="webhook.enabled",
    read=readers.flag,
    default=_WEBHOOK.enabled,
    place="own",
    help="Whether programs may send messages by signed webhooks.",
)
WEBHOOK_HOST = Setting(
    name="webhook.host",
    read=readers.text,
    default=_WEBHOOK.host,
    place="own",
    help="The address the webhook listens on.",
)
WEBHOOK_PORT = Setting(
    name="webhook.port",
    read=whole(0, 65_535),
    default=_WEBHOOK.port,
    place="own",
    help="The port it listens on; 0 takes a free one.",
)
WEBHOOK_CALLBACK = Setting(
    name="webhook.callback",
    read=optional(readers.web_address),
    default=None,
    place="own",
    help="The address answers are posted to.",
)
WEBHOOK_SECRET = Setting(
    name="webhook.secret",
    read=optional(readers.text),
    default=None,
    place="secret",
    help="Signs webhooks both ways.",
)

TABLE: tuple[Setting[Any], ...] = (
    *(PROFILE, DATABASE, MODEL, MODELS_ON, MODELS_FALLBACKS, MODELS_TIMEOUT, MODELS_TITLES, MODELS_PRICES),
    *(MODELS_CONTEXT, MODELS_CONTEXT_OF),
    *(TIMEZONE, WORKSPACE, WELCOME_TEXT),
    *(SCOPE_DM, SCOPE_GROUP, SCOPE_THREAD),
    *(RESET_MODE, RESET_IDLE, RESET_HOUR, RESET_ON_MODE, RESET_ON_IDLE, RESET_ON_HOUR),
    *(BUSY_MODE, BUSY_ON, PAIRING, TOOLSETS, PERSONALITY, HASH_USER_IDS, ID_SALT),
    *(TURNS, LOG_LEVEL, LOG_FORMAT),
    *(WEBHOOK_ENABLED, WEBHOOK_HOST, WEBHOOK_PORT, WEBHOOK_CALLBACK, WEBHOOK_SECRET),
    *tool_rows.ROWS,
    *program_rows.ROWS,
)
VARIABLES: Mapping[str, Setting[Any]] = {each.variable: each for each in TABLE if each.variable}

Tree: TypeAlias = "dict[str, Tree | Setting[Any]]"


def _tree() -> Tree:
    tree: Tree = {}
    for setting in TABLE:
        here = tree
        for part in setting.parts[:-1]:
            below = here.setdefault(part, {})
            assert isinstance(below, dict), f"{setting.name} stands under a setting"
            here = below
        here[setting.parts[-1]] = setting
    return tree


TREE = _tree()
"""The table by the keys of a file, level by level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A setting as somebody named it: the row, the keys in a file, and the owner's choice among them."""

    setting: Setting[Any]
    keys: tuple[str, ...]

    @property
    def chosen(self) -> str | None:
        """The part the owner chose, if the name has one."""
        places = (
            key for key, part in zip(self.keys, self.setting.parts, strict=True) if part.startswith("<")
        )
        return next(places, None)

    @property
    def name(self) -> str:
        """The whole name."""
        return ".".join(self.keys)


def named(name: str) -> Named:
    """Return the setting called ``name``, or raise ``InvalidValue`` with the nearest one.

    The owner's part may hold dots itself, as ids of chats do: it reaches as far as the rest of the row allows.
    """
    for setting in TABLE:
        before, bracket, after = setting.name.partition("<")
        after = after.partition(">")[2]
        if not bracket and name == setting.name:
            return Named(setting=setting, keys=tuple(setting.parts))
        chosen = name[len(before) : len(name) - len(after)]
        if bracket and chosen and name == before + chosen + after:
            keys = tuple(chosen if part.startswith("<") else part for part in setting.parts)
            return Named(setting=setting, keys=keys)
    below = [setting.name for setting in TABLE if setting.name.startswith(f"{name}.")]
    if below:
        raise InvalidValue(f"{name} is not one setting but several: {', '.join(below)}")
    raise InvalidValue(f"there is no setting {name!r}; {_hint(tuple(name.split('.')), {})}")


def unknown_key(path: tuple[str, ...], here: Tree) -> str:
    """Say that nothing is called so, with what was probably meant; ``here`` is what may stand at that level."""
    return f"there is no setting {'.'.join(path)!r}; {_hint(path, here)}"


def nearest_variable(variable: str) -> str | None:
    """Return the variable of ours that is nearly called so."""
    return next(iter(get_close_matches(variable, VARIABLES, n=1, cutoff=0.85)), None)


def chosen_family(variable: str) -> Setting[Any] | None:
    """Return the row whose chosen part somebody tried to spell in a variable."""
    for setting in TABLE:
        before, bracket, _ = setting.name.partition("<")
        if bracket and variable.startswith(PREFIX + before.upper().replace(".", "_")):
            return setting
    return None


def _hint(path: tuple[str, ...], here: Tree) -> str:
    name = ".".join(path)
    if len(path) == 1 and any(name == setting.name for setting in TABLE):
        above, _, leaf = name.rpartition(".")
        return f"write {leaf} on a line of its own, indented under {above}"
    near = get_close_matches(path[-1].lower(), here, n=1)
    meant = ".".join((*path[:-1], near[0])) if near else next(_meant(name), None)
    return f"did you mean {meant}?" if meant else f"here may stand {', '.join(here or TREE)}"


def _meant(name: str) -> Iterator[str]:
    """Yield what a name at the wrong place could stand for, best first."""
    names = [setting.name for setting in TABLE]
    leaf = name.rpartition(".")[2]
    yield from get_close_matches(name, names, n=1, cutoff=0.75)
    yield from (known for known in names if known.rpartition(".")[2] == leaf)
