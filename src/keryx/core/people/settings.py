"""The settings of people: pairing, the welcome text and toolsets."""

from collections.abc import Collection
from typing import Any, Final

from keryx.config import WELCOME
from keryx.config.readers import list_of, optional, text
from keryx.config.setting import Setting, Values
from keryx.core.conversations.rules.source import check_known_platform, check_platform
from keryx.core.people.rules.toolset import ToolsetSettings, check_toolset
from keryx.core.values.role import Role, check_role


def toolset_place(chosen: str) -> tuple[str | None, Role]:
    """Split a name under ``toolsets`` into platform (None: all) and role, or raise ``InvalidValue``."""
    platform, colon, role = chosen.rpartition(":")
    return check_platform(platform) if colon else None, check_role(role)


def _check_toolset_platform(chosen: str, known: Collection[str]) -> None:
    platform, _ = toolset_place(chosen)
    if platform is not None:
        check_known_platform(platform, known)


def _check_platforms(names: tuple[str, ...], known: Collection[str]) -> None:
    for name in names:
        check_known_platform(name, known)


WELCOME_TEXT: Setting[str | None] = Setting(
    name="welcome",
    read=optional(text),
    default=WELCOME,
    help="The welcome text that each person gets once, with the first message; `none` for no text.",
)
PAIRING: Setting[tuple[str, ...]] = Setting(
    name="pairing",
    read=list_of(check_platform),
    default=(),
    place="own",
    check_platforms=_check_platforms,
    help="The platforms on which strangers get a pairing code; a list.",
)
TOOLSETS: Setting[tuple[str, ...] | None] = Setting(
    name="toolsets.<who>",
    read=list_of(check_toolset),
    default=None,
    place="own",
    check_choice=toolset_place,
    check_platforms=_check_toolset_platform,
    help="The toolsets of the agent for a role, or for `platform:role`, which wins; a list.",
)
ROWS: Final[tuple[Setting[Any], ...]] = (WELCOME_TEXT, PAIRING, TOOLSETS)


def toolset_settings(values: Values) -> ToolsetSettings:
    """Return the toolsets by role and platform."""
    by_role: dict[Role, frozenset[str]] = {}
    by_both: dict[tuple[str, Role], frozenset[str]] = {}
    for place, names in values.by_choice(TOOLSETS).items():
        platform, role = toolset_place(place)
        if platform is None:
            by_role[role] = frozenset(names or ())
        else:
            by_both[platform, role] = frozenset(names or ())
    return ToolsetSettings(by_role=by_role, by_platform_and_role=by_both)
