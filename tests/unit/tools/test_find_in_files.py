"""List files, and find lines in them."""

import io
import json
import os
from pathlib import Path

import pytest

from keryx.core.values.json_value import JsonValue
from keryx.errors import ToolFailed
from keryx.tools.files.find_in_files import HITS_MAX, FindInFiles
from keryx.tools.files.list_files import LISTED_MAX, ListFiles
from keryx.tools.programs import search_files
from keryx.tools.workspace import Workspaces
from tests.unit.tools.using import called


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with some of everything, and a secret beside it."""
    root = tmp_path / "work"
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "s.py").write_text("tea = 'secret'\n")
    files = {
        "a.py": "import tea\nTEA = tea.pour()\n",
        "src/b.py": "# no drink\n",
        "src/deep/test_c.py": "assert tea\r\n",
        "notes.txt": "tea at five",
        ".git/config": "tea",
        "keryx/.env": "tea",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    (root / "image").write_bytes(b"tea\0")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "link.py").symlink_to(tmp_path / "secret" / "s.py")
    os.mkfifo(root / "pipe")
    return root


async def look_with(root: Path, name: str, *, seconds: float = 60, **arguments: JsonValue) -> str:
    workspaces = Workspaces(default=root, kept_out=[root / "keryx"])
    tools = (ListFiles(workspaces, seconds=seconds), FindInFiles(workspaces, seconds=seconds))
    [tool] = [each for each in tools if each.name == name]
    assert (tool.offer.effect, tool.offer.toolset) == ("pure", "files")
    return await called(tool, **arguments)


async def test_a_folder_is_listed(root: Path) -> None:
    listed = (await look_with(root, "list_files")).split("\n")
    assert listed[0] == f"In . of {root}:"
    assert {"a.py", "src/", "notes.txt", "pipe"} <= set(listed)
    assert await look_with(root, "list_files", folder="src") == f"In src of {root}:\nb.py\ndeep/"
    with pytest.raises(ToolFailed, match="no folder 'nowhere'"):
        await look_with(root, "list_files", folder="nowhere")
    with pytest.raises(ToolFailed, match="leads out"):
        await look_with(root, "list_files", folder="out")


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.py", {"a.py", "link.py", "src/b.py", "src/deep/test_c.py"}),
        ("src/*.py", {"src/b.py"}),
        ("src/**/*.py", {"src/b.py", "src/deep/test_c.py"}),
        ("./src/**", {"src/b.py", "src/deep/test_c.py"}),
        ("?.py", {"a.py", "src/b.py"}),
        ("[a].py", set()),
    ],
)
async def test_a_glob_finds_files_by_name_and_never_beside_the_workspace(
    root: Path, glob: str, names: set[str]
) -> None:
    listed = (await look_with(root, "list_files", glob=glob)).split("\n")
    assert set(listed[1:]) == names
    assert listed[0].startswith("In ." if names else "Nothing in .")


async def test_a_long_list_is_cut_and_says_so(tmp_path: Path) -> None:
    for number in range(LISTED_MAX + 1):
        (tmp_path / f"{number:04}.txt").touch()
    plain = (await look_with(tmp_path, "list_files")).split("\n")
    assert (len(plain), plain[-1]) == (LISTED_MAX + 2, f"There are {LISTED_MAX + 1}; use a glob.")
    globbed = (await look_with(tmp_path, "list_files", glob="*")).split("\n")
    assert (len(globbed), globbed[-1]) == (
        LISTED_MAX + 2,
        f"There is more than these {LISTED_MAX}; look for less.",
    )


async def test_lines_are_found_literally(root: Path) -> None:
    found = await look_with(root, "find_in_files", pattern="tea")
    assert found.split("\n") == [
        "a.py:1: import tea",
        "a.py:2: TEA = tea.pour()",
        "notes.txt:1: tea at five",
        "src/deep/test_c.py:1: assert tea",
    ]
    assert await look_with(root, "find_in_files", pattern="tea.p*") == "Nothing found."
    assert (
        await look_with(root, "find_in_files", pattern="DRINK", ignore_case=True) == "src/b.py:1: # no drink"
    )
    assert await look_with(root, "find_in_files", pattern="tea", folder="src", glob="*.py") == (
        "src/deep/test_c.py:1: assert tea"
    )


async def test_lines_are_found_by_a_regular_expression(root: Path) -> None:
    found = await look_with(root, "find_in_files", pattern=r"^(import|assert)\s", regex=True)
    assert found.split("\n") == ["a.py:1: import tea", "src/deep/test_c.py:1: assert tea"]
    with pytest.raises(ToolFailed, match="not a regular expression: unterminated character set"):
        await look_with(root, "find_in_files", pattern="[a", regex=True)
    with pytest.raises(ToolFailed, match="too long"):
        await look_with(root, "find_in_files", pattern="x" * 1_001)


async def test_a_pattern_that_never_ends_is_stopped_and_its_hits_returned(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("aaa!\n" + "a" * 64 + "\n")
    told = await look_with(tmp_path, "find_in_files", seconds=4, pattern="(a|a)*!", regex=True)
    assert told == "a.txt:1: aaa!\nThis is not all: the search was ended after 4 s. Look in a smaller folder."


async def test_many_and_long_lines_are_cut(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{'tea' * 200}\n" * (HITS_MAX + 1))
    found = (await look_with(tmp_path, "find_in_files", pattern="tea")).split("\n")
    assert len(found) == HITS_MAX + 1
    assert found[0] == f"a.txt:1: {'tea' * 100} […]"
    assert found[-1].startswith("There is more than these")


def ask(**request: object) -> list[list[str]]:
    """Let the program answer in this process, where its coverage is seen."""
    told = io.StringIO()
    whole: dict[str, object] = {
        "kept_out": [],
        "glob": "",
        "pattern": None,
        "is_regex": False,
        "ignore_case": False,
        "hits_max": 9,
    }
    search_files.main(io.StringIO(json.dumps(whole | request)), told)
    return [json.loads(line) for line in told.getvalue().splitlines()]


def test_the_program_writes_each_hit_at_once(root: Path) -> None:
    place = {"root": str(root), "folder": str(root), "kept_out": [str(root / "keryx")]}
    assert ask(**place, glob="a*") == [["hit", "a.py"]]
    assert ask(**place, pattern="tea", glob="*.py", hits_max=1) == [
        ["hit", "a.py:1: import tea"],
        ["more", ""],
    ]
    assert ask(**place, pattern="(", is_regex=True)[0][0] == "bad"
    (root / "big.txt").write_bytes(b"tea" * 2_000_000)
    assert ask(**place, pattern="tea at", ignore_case=True) == [["hit", "notes.txt:1: tea at five"]]
