"""Installed plug-ins are found in the metadata of packages, as by the standard library."""

import importlib.metadata
import sys
from pathlib import Path

from keryx.config_load.entry_points import EntryPoint, read_entry_points
from tests.plugged import declare

GROUPS = ("keryx.agents", "keryx.backends", "keryx.platforms", "keryx.tools")


def test_the_standard_library_finds_the_same(tmp_path: Path) -> None:
    path = [declare(tmp_path, "keryx.platforms", pager="pager.plugin:PLUGIN"), *sys.path]
    found = read_entry_points(tuple(path))
    expected = {
        group: {
            (entry.name, entry.module, entry.attr)
            for package in importlib.metadata.distributions(path=path)
            for entry in package.entry_points.select(group=group)
        }
        for group in GROUPS
    }
    assert {
        group: {(name, each.module, each.attribute) for name, entries in named.items() for each in entries}
        for group, named in found.items()
    } == expected
    assert ("pager", "pager.plugin", "PLUGIN") in expected["keryx.platforms"]


def test_only_entry_points_for_keryx_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "Two_Words-1.0.dist-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_text(
        "[console_scripts]\nrun = a:b\n\n[keryx.tools]\n# not = this:one\nlamp = lamp.plugin : PLUGIN [light]\n"
    )
    (tmp_path / "empty-1.0.dist-info").mkdir()
    assert read_entry_points((str(tmp_path), str(tmp_path / "nowhere"))) == {
        "keryx.tools": {"lamp": (EntryPoint("lamp.plugin", "PLUGIN", "two_words"),)}
    }


def test_the_first_version_of_a_package_on_the_path_counts(tmp_path: Path) -> None:
    first = declare(tmp_path / "first", "keryx.tools", lamp="new:PLUGIN")
    second = declare(tmp_path / "second", "keryx.tools", lamp="old:PLUGIN")
    found = read_entry_points((first, second))
    assert [each.module for each in found["keryx.tools"]["lamp"]] == ["new"]
