"""Reading and changing files of the workspace, and that no path leads out of it."""

import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from keryx.core.media.rules import SHOWN_CHARACTERS_MAX
from keryx.core.values.json_value import JsonValue
from keryx.errors import ToolFailed
from keryx.tools.files.edit_file import EDIT_BYTES_MAX
from keryx.tools.files.plugin import file_tools
from keryx.tools.files.read_file import LINE_CHARACTERS_MAX
from keryx.tools.tool import Toolbox
from keryx.tools.workspace import Workspaces
from tests.unit.tools.using import called, use_of


class Desk:
    """A workspace with a secret beside it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.root.mkdir()
        self.secret = folder / "secret.txt"
        self.secret.write_text("tops")
        self.own = self.root / "keryx"
        self.own.mkdir()
        (self.own / ".env").write_text("KEY=1")
        self.tools = Toolbox(file_tools(Workspaces(default=self.root, kept_out=[self.own])))

    async def do(self, name: str, path: str, **arguments: JsonValue) -> str:
        tool = self.tools.find(name)
        assert tool is not None
        return await called(tool, path=path, **arguments)

    async def refused(self, name: str, path: str, **arguments: JsonValue) -> str:
        with pytest.raises(ToolFailed) as failure:
            await self.do(name, path, **arguments)
        return str(failure.value)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_tools_that_change_files_declare_their_effect(desk: Desk) -> None:
    assert {(offer.name, offer.effect, offer.toolset) for offer in desk.tools.offers()} == {
        ("read_file", "pure", "files"),
        ("write_file", "idempotent", "files"),
        ("edit_file", "once", "files"),
        ("list_files", "pure", "files"),
        ("find_in_files", "pure", "files"),
    }


# ------------------------------------------------------------------------------------------------ reading


async def test_a_range_of_lines_is_read_with_its_position(desk: Desk) -> None:
    (desk.root / "a.txt").write_bytes("eins\r\nzwei\ndrei\nvier ü".encode())
    assert await desk.do("read_file", "a.txt") == "a.txt, lines 1 to 4 of 4.\neins\nzwei\ndrei\nvier ü"
    window = await desk.do("read_file", "a.txt", first_line=2, lines=2)
    assert window == "a.txt, lines 2 to 3 of 4. Read on with first_line 4.\nzwei\ndrei"
    assert "has 4 lines; there is no line 5" in await desk.refused("read_file", "a.txt", first_line=5)
    (desk.root / "empty").touch()
    assert await desk.do("read_file", "empty") == "empty is empty."


async def test_a_long_file_is_read_in_ranges_below_the_limit_of_long_results(desk: Desk) -> None:
    lines = [f"{number}: {'x' * (number % 90)}" for number in range(1, 1_501)]
    (desk.root / "long.txt").write_text("\n".join([*lines, "y" * 5_000]))
    read: Sequence[str] = []
    while len(read) < len(lines) + 1:
        told = await desk.do("read_file", "long.txt", first_line=len(read) + 1, lines=5_000)
        assert len(told) <= SHOWN_CHARACTERS_MAX
        read = [*read, *told.split("\n")[1:]]
    assert read[:-1] == lines
    assert read[-1] == "y" * LINE_CHARACTERS_MAX + " [3000 characters more]"


async def test_a_file_that_is_not_text_is_refused_with_a_reason(desk: Desk) -> None:
    (desk.root / "picture").write_bytes(b"\x89PNG\0\0")
    os.mkfifo(desk.root / "pipe")
    assert (
        await desk.refused("read_file", "picture") == "'picture' is binary (6 bytes); only text can be read."
    )
    assert "is a folder" in await desk.refused("read_file", "keryx/..")
    assert "not an ordinary file" in await desk.refused("read_file", "pipe")
    assert "There is no file 'b.txt'" in await desk.refused("read_file", "b.txt")
    assert "is not a path" in await desk.refused("read_file", "a\0b")
    assert "that did not work: File name too long" in await desk.refused("read_file", "n" * 300)
    with (desk.root / "huge").open("wb") as file:
        file.truncate(60_000_000)
    assert "the limit is 50000000" in await desk.refused("read_file", "huge")


# ------------------------------------------------------------------------------------------------ staying inside


@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file"])
async def test_no_path_leads_out_of_the_workspace(desk: Desk, tool: str) -> None:
    (desk.root / "out").symlink_to(desk.root.parent)
    (desk.root / "link.txt").symlink_to(desk.secret)
    (desk.root / "loop").symlink_to("loop")
    more: dict[str, dict[str, JsonValue]] = {
        "read_file": {},
        "write_file": {"content": "mine"},
        "edit_file": {"old": "tops", "new": "mine"},
    }
    ways = ["../secret.txt", str(desk.secret), "out/secret.txt", "link.txt", "keryx/../../secret.txt", "~/x"]
    for path in ways:
        assert "leads out of the workspace" in await desk.refused(tool, path, **more[tool]), path
    assert "is not a path" in await desk.refused(tool, "loop", **more[tool])
    for path in ("keryx/.env", "keryx/new"):
        assert "one of Keryx's own files" in await desk.refused(tool, path, **more[tool])
    assert desk.secret.read_text() == "tops"
    assert not (desk.own / "new").exists()


async def test_a_link_within_the_workspace_is_followed(desk: Desk) -> None:
    (desk.root / "a.txt").write_text("tea")
    (desk.root / "b.txt").symlink_to("a.txt")
    assert "tea" in await desk.do("read_file", "b.txt")
    await desk.do("write_file", "b.txt", content="milk")
    assert (desk.root / "b.txt").is_symlink()
    assert (desk.root / "a.txt").read_text() == "milk"


async def test_a_session_works_in_its_own_folder(desk: Desk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    use = replace(use_of(path="a.txt", content="x"), workspace=str(other))
    write = desk.tools.find("write_file")
    assert write is not None
    with pytest.raises(ToolFailed, match="is no folder on this machine"):
        await write.run(use)
    other.mkdir()
    await write.run(use)
    assert (other / "a.txt").read_text() == "x"
    assert not (desk.root / "a.txt").exists()


# ------------------------------------------------------------------------------------------------ changing


async def test_a_file_is_written_with_its_folders_and_keeps_its_mode(desk: Desk) -> None:
    assert await desk.do("write_file", "a/b/c.sh", content="ü\n") == "a/b/c.sh is written, 3 bytes."
    path = desk.root / "a/b/c.sh"
    ordinary = desk.root / "ordinary"
    ordinary.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)
    path.chmod(0o751)
    await desk.do("write_file", "a/b/c.sh", content="")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("", 0o751)
    assert [each.name for each in path.parent.iterdir()] == ["c.sh"], "nothing is left beside it"


async def test_a_file_that_cannot_be_written_stays_as_it_was(desk: Desk) -> None:
    (desk.root / "a.txt").write_text("tea")
    assert "is a folder" in await desk.refused("write_file", "keryx/..", content="x")
    assert "half a character" in await desk.refused("write_file", "a.txt", content="\ud800")
    assert "that did not work" in await desk.refused("write_file", "a.txt/b", content="x")
    assert (desk.root / "a.txt").read_text() == "tea"


async def test_a_text_is_replaced_if_it_occurs_once(desk: Desk) -> None:
    path = desk.root / "a.txt"
    path.write_text("one tea, two teas")
    twice = await desk.refused("edit_file", "a.txt", old="tea", new="milk")
    assert twice == "'a.txt' contains 'old' 2 times; take more lines around it, or set 'all'."
    assert await desk.do("edit_file", "a.txt", old="one tea", new="no tea") == "a.txt: replaced once."
    assert await desk.do("edit_file", "a.txt", old="tea", new="", all=True) == "a.txt: replaced 2 times."
    assert path.read_text() == "no , two s"
    assert "does not contain 'old' exactly so" in await desk.refused("edit_file", "a.txt", old="tea", new="x")
    assert "'old' is empty" in await desk.refused("edit_file", "a.txt", old="", new="x")
    assert "are the same" in await desk.refused("edit_file", "a.txt", old="no", new="no")
    assert "There is no file" in await desk.refused("edit_file", "b.txt", old="a", new="b")


async def test_crlf_line_ends_are_kept(desk: Desk) -> None:
    path = desk.root / "dos.txt"
    path.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    await desk.do("edit_file", "dos.txt", old="one\ntwo\n", new="1\n2\n")
    assert path.read_bytes() == b"1\r\n2\r\nthree\r\n"


async def test_a_file_that_is_not_utf_8_or_too_large_is_not_edited(desk: Desk) -> None:
    (desk.root / "latin").write_bytes(b"caf\xe9")
    assert "not UTF-8" in await desk.refused("edit_file", "latin", old="caf", new="x")
    (desk.root / "big").write_bytes(b"x" * (EDIT_BYTES_MAX + 1))
    assert "bytes; the limit is" in await desk.refused("edit_file", "big", old="x", new="y")


@pytest.mark.parametrize("path", [".git/config", "sub/.git", "sub/.GIT/hooks/x", "link/config"])
async def test_git_s_own_files_are_not_changed(desk: Desk, path: str) -> None:
    (desk.root / ".git").mkdir()
    (desk.root / ".git" / "config").write_text("[core]")
    (desk.root / "link").symlink_to(desk.root / ".git")
    for name, given in (("write_file", {"content": "x"}), ("edit_file", {"old": "[core]", "new": "x"})):
        assert "is one of git's own files" in await desk.refused(name, path, **given)
    assert (desk.root / ".git" / "config").read_text() == "[core]"
