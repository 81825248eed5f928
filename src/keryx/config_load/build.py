"""From the values that count to the configuration, and to the rows that explain it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from keryx.config import (
    BusySettings,
    Configuration,
    Explained,
    LogSettings,
    ModelsSettings,
    PromptSettings,
    Settings,
    ToolsSettings,
    WebhookSettings,
)
from keryx.config_load import table, tool_rows
from keryx.config_load.folders import Folders
from keryx.config_load.programs import agent_of, mcp_servers_of
from keryx.config_load.readers import NONE, busy_place, reset_place, toolset_place
from keryx.config_load.setting import Setting
from keryx.config_load.sources import Reading
from keryx.config_load.table import TABLE
from keryx.config_load.variables import program_variables, provider_variables
from keryx.domain.busy import BusyMode
from keryx.domain.person import Role
from keryx.domain.prices import Price
from keryx.domain.reset import ResetPolicies, ResetPolicy
from keryx.domain.session_key import ScopeSettings
from keryx.domain.settings import Personality
from keryx.domain.source import ChatType
from keryx.domain.toolset import ToolsetSettings


def configuration_of(
    reading: Reading,
    folders: Folders,
    project_file: Path | None,
    *,
    variables: Mapping[str, str],
    environ: Mapping[str, str],
) -> Configuration:
    """Return the configuration that ``reading`` found; it must have found no problem.

    ``variables`` is every one that is set, in the environment or the profile's ``.env``.
    """
    database = reading.of(table.DATABASE) or str(folders.data_dir / "keryx.db")
    workspace = reading.of(table.WORKSPACE)
    return Configuration(
        settings=_settings(reading, folders.profile),
        config_dir=folders.config_dir,
        data_dir=folders.data_dir,
        user_file=folders.user_file,
        project_file=project_file,
        database=database,
        models=_models(reading, variables),
        agent=agent_of(reading, variables),
        mcp_servers=mcp_servers_of(reading, variables),
        timezone=reading.of(table.TIMEZONE),
        workspace=None if workspace is None else Path(workspace),
        tools=_tools(reading, environ),
        prompt=PromptSettings(
            hash_user_ids=reading.of(table.HASH_USER_IDS), id_salt=reading.of(table.ID_SALT)
        ),
        turns_max=reading.of(table.TURNS),
        log=LogSettings(level=reading.of(table.LOG_LEVEL), format=reading.of(table.LOG_FORMAT)),
        webhook=WebhookSettings(
            enabled=reading.of(table.WEBHOOK_ENABLED),
            host=reading.of(table.WEBHOOK_HOST),
            port=reading.of(table.WEBHOOK_PORT),
            callback=reading.of(table.WEBHOOK_CALLBACK),
            secret=reading.of(table.WEBHOOK_SECRET),
        ),
        rows=tuple(_rows(reading, database)),
    )


def _tools(reading: Reading, environ: Mapping[str, str]) -> ToolsSettings:
    named = reading.of(tool_rows.TERMINAL_VARIABLES)
    return ToolsSettings(
        fetch_private=reading.of(tool_rows.FETCH_PRIVATE),
        fetch_allow=reading.of(tool_rows.FETCH_ALLOW),
        environment=MappingProxyType(program_variables(environ, named=named)),
    )


def _models(reading: Reading, variables: Mapping[str, str]) -> ModelsSettings:
    by_platform = {
        found.named.chosen or "": reading.of(table.MODELS_ON, found.named.chosen)
        for found in reading.chosen(table.MODELS_ON)
    }
    windows = {
        found.named.chosen or "": reading.of(table.MODELS_CONTEXT_OF, found.named.chosen)
        for found in reading.chosen(table.MODELS_CONTEXT_OF)
    }
    return ModelsSettings(
        default=reading.of(table.MODEL),
        by_platform=MappingProxyType({name: model for name, model in by_platform.items() if model}),
        fallbacks=reading.of(table.MODELS_FALLBACKS),
        timeout_seconds=reading.of(table.MODELS_TIMEOUT),
        titles=reading.of(table.MODELS_TITLES),
        prices=MappingProxyType(_prices(reading)),
        context_tokens=reading.of(table.MODELS_CONTEXT),
        context_tokens_of=MappingProxyType({name: tokens for name, tokens in windows.items() if tokens}),
        variables=MappingProxyType(provider_variables(variables)),
    )


def _settings(reading: Reading, profile: str) -> Settings:
    pairing: tuple[str, ...] = reading.of(table.PAIRING)
    return Settings(
        profile=profile,
        scope=ScopeSettings(
            dm=reading.of(table.SCOPE_DM),
            group=reading.of(table.SCOPE_GROUP),
            thread=reading.of(table.SCOPE_THREAD),
        ),
        reset=_reset(reading),
        busy=_busy(reading),
        pairing_platforms=frozenset(pairing),
        welcome=reading.of(table.WELCOME_TEXT),
        personalities=MappingProxyType(_personalities(reading)),
        toolsets=_toolsets(reading),
        titles=reading.of(table.MODELS_TITLES),
    )


def _reset(reading: Reading) -> ResetPolicies:
    by_chat_type: dict[ChatType, ResetPolicy] = {}
    by_platform: dict[str, ResetPolicy] = {}
    by_both: dict[tuple[str, ChatType], ResetPolicy] = {}
    for place in dict.fromkeys(_reset_places(reading)):
        policy = _policy(reading, place)
        platform, chat_type = reset_place(place)
        if chat_type is None:
            by_platform[platform or ""] = policy
        elif platform is None:
            by_chat_type[chat_type] = policy
        else:
            by_both[platform, chat_type] = policy
    return ResetPolicies(
        default=_policy(reading, None),
        by_chat_type=by_chat_type,
        by_platform=by_platform,
        by_platform_and_chat_type=by_both,
    )


def _reset_places(reading: Reading) -> Iterator[str]:
    for setting in (table.RESET_ON_MODE, table.RESET_ON_IDLE, table.RESET_ON_HOUR):
        yield from (found.named.chosen or "" for found in reading.chosen(setting))


def _policy(reading: Reading, place: str | None) -> ResetPolicy:
    """Return the policy of a place; what it leaves out is that of everywhere."""
    mode = reading.of(table.RESET_ON_MODE, place)
    idle = reading.of(table.RESET_ON_IDLE, place)
    hour = reading.of(table.RESET_ON_HOUR, place)
    return ResetPolicy(
        mode=reading.of(table.RESET_MODE) if mode is None else mode,
        idle_minutes=reading.of(table.RESET_IDLE) if idle is None else idle,
        at_hour=reading.of(table.RESET_HOUR) if hour is None else hour,
        zone=reading.of(table.TIMEZONE),
    )


def _busy(reading: Reading) -> BusySettings:
    default = reading.of(table.BUSY_MODE)
    by_platform: dict[str, BusyMode] = {}
    by_chat: dict[tuple[str, str], BusyMode] = {}
    for found in reading.chosen(table.BUSY_ON):
        place = found.named.chosen or ""
        mode = reading.of(table.BUSY_ON, place) or default
        platform, chat = busy_place(place)
        if chat is None:
            by_platform[platform] = mode
        else:
            by_chat[platform, chat] = mode
    return BusySettings(
        default=default,
        by_platform=MappingProxyType(by_platform),
        by_chat=MappingProxyType(by_chat),
    )


def _toolsets(reading: Reading) -> ToolsetSettings:
    by_role: dict[Role, frozenset[str]] = {}
    by_both: dict[tuple[str, Role], frozenset[str]] = {}
    for found in reading.chosen(table.TOOLSETS):
        place = found.named.chosen or ""
        names = reading.of(table.TOOLSETS, place) or ()
        platform, role = toolset_place(place)
        if platform is None:
            by_role[role] = frozenset(names)
        else:
            by_both[platform, role] = frozenset(names)
    return ToolsetSettings(by_role=by_role, by_platform_and_role=by_both)


def _personalities(reading: Reading) -> dict[str, Personality]:
    texts = {
        found.named.chosen or "": reading.of(table.PERSONALITY, found.named.chosen)
        for found in reading.chosen(table.PERSONALITY)
    }
    return {name: Personality(name=name, text=text) for name, text in texts.items() if text is not None}


def _prices(reading: Reading) -> dict[str, Price]:
    prices = {
        found.named.chosen or "": reading.of(table.MODELS_PRICES, found.named.chosen)
        for found in reading.chosen(table.MODELS_PRICES)
    }
    return {model: price for model, price in prices.items() if price is not None}


def _rows(reading: Reading, database: str) -> Iterator[Explained]:
    for setting in TABLE:
        if setting.chosen is not None:
            for found in reading.chosen(setting):
                yield Explained(found.named.name, _shown(setting, found.value), found.origin)
        else:
            value = database if setting is table.DATABASE else reading.of(setting)
            yield Explained(setting.name, _shown(setting, value), reading.origin_of(setting))


def _shown(setting: Setting[Any], value: object) -> str:
    if setting.place == "secret":
        return "not set" if value is None else "set"
    if value is None or value == ():
        return NONE
    if setting.holds_pairs and isinstance(value, tuple):
        # Only the names: what a server is given may be a secret.
        value = tuple(each.partition("=")[0] for each in value)
    if isinstance(value, bool):
        return str(value).lower()
    return setting.shown(", ".join(value) if isinstance(value, tuple) else str(value))
