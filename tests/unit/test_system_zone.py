"""The default of ``timezone``: the machine's IANA zone, UTC only where there is none."""

from pathlib import Path

import pytest

from keryx.config_load.program import settings_of_program
from keryx.config_load.system_zone import system_zone

DATABASE = "usr/share/zoneinfo"


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    etc = tmp_path / "etc"
    etc.mkdir()
    return etc


def link(etc: Path, zone: str) -> None:
    target = etc.parent / DATABASE / zone
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch()
    (etc / "localtime").symlink_to(target)


@pytest.mark.parametrize(
    ("linked", "zone"),
    [("Europe/Rome", "Europe/Rome"), ("posix/Asia/Tokyo", "Asia/Tokyo"), ("Etc/UTC", "UTC")],
)
def test_the_link_of_the_system_names_the_zone(etc: Path, linked: str, zone: str) -> None:
    link(etc, linked)
    assert system_zone({}, etc) == zone


def test_a_copied_file_is_named_by_the_file_beside_it(etc: Path) -> None:
    (etc / "localtime").touch()
    (etc / "timezone").write_text("America/Toronto\n")
    assert system_zone({}, etc) == "America/Toronto"


@pytest.mark.parametrize("given", ["Europe/Paris", ":Europe/Paris", "/usr/share/zoneinfo/Europe/Paris"])
def test_the_variable_tz_wins(etc: Path, given: str) -> None:
    link(etc, "Europe/Rome")
    assert system_zone({"TZ": given}, etc) == "Europe/Paris"


def test_a_rule_in_tz_has_no_name_so_the_system_counts(etc: Path) -> None:
    link(etc, "Europe/Rome")
    assert system_zone({"TZ": "CET-1CEST"}, etc) == "Europe/Rome"


def test_without_any_of_these_it_is_utc(etc: Path) -> None:
    assert system_zone({}, etc) == "UTC"


def test_a_program_has_the_machine_s_zone_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert settings_of_program({}, profile=None).reset.default.zone == "Asia/Tokyo"
