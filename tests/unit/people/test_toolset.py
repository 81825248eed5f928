"""The toolsets of a role on a platform."""

from typing import Any

import pytest

from keryx.core.people.rules.access import Grant
from keryx.core.people.rules.toolset import ToolsetSettings, may_use_toolset
from keryx.core.values.role import Role
from keryx.errors import InvalidValue


def given(
    role: Role,
    toolset: str,
    *grants: Grant,
    platform: str = "telegram",
    settings: ToolsetSettings | None = None,
    is_foreign: bool = False,
) -> bool:
    return may_use_toolset(
        settings or ToolsetSettings(),
        grants,
        role=role,
        platform=platform,
        toolset=toolset,
        is_foreign=is_foreign,
    )


@pytest.mark.parametrize(
    ("role", "sets"),
    [("owner", {"state", "memory", "general"}), ("member", {"state", "memory"}), ("guest", set())],
)
def test_the_default_toolsets_of_a_role(role: Role, sets: set[str]) -> None:
    assert {name for name in ("state", "memory", "general", "terminal") if given(role, name)} == sets


def test_the_owner_gets_the_terminal_at_home_and_on_a_messaging_platform_only_by_name() -> None:
    assert given("owner", "terminal", platform="local")
    assert not given("owner", "terminal", platform="telegram")
    assert not given("member", "terminal", platform="local")
    named = ToolsetSettings(by_platform_and_role={("telegram", "owner"): frozenset({"all", "terminal"})})
    assert given("owner", "terminal", settings=named)
    assert given("owner", "state", settings=named)
    assert not given("owner", "terminal", settings=named, platform="signal")


def test_foreign_tools_are_given_like_the_terminal_whatever_their_toolset() -> None:
    assert given("owner", "mcp-tracker", platform="local", is_foreign=True)
    assert not given("owner", "mcp-tracker", is_foreign=True)
    assert not given("owner", "web", is_foreign=True)
    named = ToolsetSettings(by_platform_and_role={("telegram", "owner"): frozenset({"all", "mcp-tracker"})})
    assert given("owner", "mcp-tracker", settings=named, is_foreign=True)
    assert not given("owner", "mcp-other", settings=named, is_foreign=True)


def test_the_owner_s_files_are_given_like_the_terminal_and_the_web_like_other_toolsets() -> None:
    assert given("owner", "files", platform="local")
    assert not given("owner", "files", platform="telegram")
    named = ToolsetSettings(by_role={"owner": frozenset({"all", "files"})})
    assert given("owner", "files", settings=named)
    assert not given("owner", "terminal", settings=named)
    assert given("owner", "web")
    assert not given("member", "web")


def test_a_platform_of_a_role_wins_over_the_role() -> None:
    settings = ToolsetSettings(
        by_role={"member": frozenset({"general"})},
        by_platform_and_role={("signal", "member"): frozenset()},
    )
    assert given("member", "general", settings=settings)
    assert not given("member", "state", settings=settings)
    assert not given("member", "general", settings=settings, platform="signal")


def test_the_owner_s_grants_override_the_configuration() -> None:
    allow = Grant(role="guest", kind="toolset", name="state")
    deny = Grant(role="owner", kind="toolset", name="*", platform="telegram", allow=False)
    other = Grant(role="member", kind="command", name="*", allow=False)
    assert given("guest", "state", allow, deny, other)
    assert not given("owner", "state", allow, deny, other)
    assert given("owner", "state", allow, deny, other, platform="signal")
    assert given("member", "state", allow, deny, other)


@pytest.mark.parametrize(
    "wrong",
    [
        {"by_role": {"boss": frozenset()}},
        {"by_role": {"owner": frozenset({"No Name"})}},
        {"by_platform_and_role": {("Telegram", "owner"): frozenset()}},
        {"by_platform_and_role": {("telegram", "boss"): frozenset()}},
    ],
)
def test_wrong_settings_cannot_be_constructed(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        ToolsetSettings(**wrong)
