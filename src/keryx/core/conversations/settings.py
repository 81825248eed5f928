"""The settings of conversations: scope, personalities and titles."""

from typing import Any, Final, get_args

from keryx.config.readers import CONTROL, flag, one_of, optional, text
from keryx.config.setting import Setting, Values
from keryx.core.conversations.rules.session_key import DmScope, GroupScope, ScopeSettings, ThreadScope
from keryx.core.conversations.rules.session_settings import Personality
from keryx.errors import InvalidValue

_SCOPE: Final = ScopeSettings()


def personality_name(chosen: str) -> str:
    """Return the name of a personality, or raise ``InvalidValue`` unless it is one word."""
    if chosen.split() != [chosen] or CONTROL.search(chosen):
        raise InvalidValue(f"the personality's name {chosen!r} must be one word")
    return chosen


SCOPE_DM: Setting[DmScope] = Setting(
    name="scope.dm",
    read=one_of(get_args(DmScope)),
    default=_SCOPE.dm,
    help="Which direct messages share a conversation: those of a `chat`, a `platform` or a `person`.",
)
SCOPE_GROUP: Setting[GroupScope] = Setting(
    name="scope.group",
    read=one_of(get_args(GroupScope)),
    default=_SCOPE.group,
    help="Which messages of a group share a conversation: those of the `chat`, or of each `user`.",
)
SCOPE_THREAD: Setting[ThreadScope] = Setting(
    name="scope.thread",
    read=one_of(get_args(ThreadScope)),
    default=_SCOPE.thread,
    help="Which messages of a thread share a conversation: all (`shared`), or those of each `user`.",
)
PERSONALITY: Setting[str | None] = Setting(
    name="personalities.<name>",
    read=optional(text),
    default=None,
    check_choice=personality_name,
    help="The text that the agent gets in a conversation in which `/personality` chose this name.",
)
TITLES = Setting(
    name="models.titles",
    read=flag,
    default=True,
    help="Whether the model writes a title after the first exchange. It never replaces a person's title.",
)
ROWS: Final[tuple[Setting[Any], ...]] = (SCOPE_DM, SCOPE_GROUP, SCOPE_THREAD, PERSONALITY, TITLES)


def scope_settings(values: Values) -> ScopeSettings:
    """Return the scope settings."""
    return ScopeSettings(dm=values.of(SCOPE_DM), group=values.of(SCOPE_GROUP), thread=values.of(SCOPE_THREAD))


def personalities(values: Values) -> dict[str, Personality]:
    """Return the configured personalities by name."""
    texts = values.by_choice(PERSONALITY)
    return {name: Personality(name=name, text=text) for name, text in texts.items() if text is not None}
