"""``write_file`` and ``edit_file``: change a text file, the whole file or nothing. An existing file keeps its mode.

The effect of an edit is ``once``: the new text may contain the old one, so the file does not show afterwards whether
a replacement was made. After a crash the model learns that the outcome is unknown, and can read the file.
"""

import hashlib
import os
import stat
from pathlib import Path
from typing import Final

from keryx.core.values.turn_states import StepEffect
from keryx.errors import ToolFailed
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.files.file_tool import PATH, FileTool, check_file
from keryx.tools.tool import ToolCall
from keryx.tools.workspace import Workspace

EDIT_BYTES_MAX: Final = 5_000_000


class WriteFile(FileTool):
    """Writes a new file, or replaces the whole content of an existing one."""

    name = "write_file"
    description = "Write a text file in the workspace: a new one, or the whole content of an existing one."
    effect: StepEffect = "idempotent"
    parameters = {  # noqa: RUF012 - never changed
        "path": PATH,
        "content": Parameter(help="The whole content of the file", required=True, may_be_empty=True),
    }

    def act(self, workspace: Workspace, path: Path, call: ToolCall, given: Arguments) -> str:
        """Write the file and return its size."""
        name = workspace.shown(path)
        _check_not_git(name)
        if path.exists():
            check_file(path, name, bytes_max=None)
        data = _encode(given.text("content"))
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace_file(path, data, key=call.key)
        return f"{name} is written, {len(data)} bytes."


class EditFile(FileTool):
    """Replaces an exact text in a file."""

    name = "edit_file"
    description = (
        "Replace a text in a file of the workspace. The file must contain the old text exactly, and only once unless "
        "all are to be replaced; include as many lines around it as make it unique."
    )
    effect: StepEffect = "once"
    parameters = {  # noqa: RUF012 - never changed
        "path": PATH,
        "old": Parameter(help="The text, exactly as in the file", required=True, may_be_empty=True),
        "new": Parameter(help="The text in its place", required=True, may_be_empty=True),
        "all": Parameter(kind="boolean", help="Whether to replace every occurrence"),
    }

    def act(self, workspace: Workspace, path: Path, call: ToolCall, given: Arguments) -> str:
        """Replace the text and return how often it was found."""
        name = workspace.shown(path)
        old, new = given.text("old"), given.text("new")
        if not old:
            raise ToolFailed("'old' is empty; to write a whole file, use write_file.")
        if old == new:
            raise ToolFailed("'old' and 'new' are the same; nothing would change.")
        _check_not_git(name)
        check_file(path, name, bytes_max=EDIT_BYTES_MAX)
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            raise ToolFailed(f"{name!r} is not UTF-8 text; only the terminal can change it.") from None
        if old not in text and "\r\n" in text:
            old, new = (each.replace("\r\n", "\n").replace("\n", "\r\n") for each in (old, new))
        count = text.count(old)
        if count == 0:
            raise ToolFailed(f"{name!r} does not contain 'old' exactly so; read the file again.")
        if count > 1 and not given.flag("all"):
            raise ToolFailed(
                f"{name!r} contains 'old' {count} times; take more lines around it, or set 'all'."
            )
        _replace_file(path, _encode(text.replace(old, new)), key=call.key)
        return f"{name}: replaced {'once' if count == 1 else f'{count} times'}."


def _check_not_git(name: str) -> None:
    """Raise ``ToolFailed`` for git's own files: they say which programs git runs."""
    if any(part.casefold() == ".git" for part in Path(name).parts):
        raise ToolFailed(f"{name!r} is one of git's own files; only git changes them, in the terminal.")


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolFailed("The text holds half a character (a lone surrogate); files are UTF-8.") from None


def _replace_file(path: Path, data: bytes, *, key: str) -> None:
    """Replace the content of a file; a new file gets the mode that any program would give it."""
    # Named after the call: if the call runs again after a crash, it finds the file it left behind.
    temporary = path.with_name(f".keryx-{hashlib.sha256(key.encode()).hexdigest()[:16]}.tmp")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if path.exists():
                os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
