"""``edit_file``: replace an exact text in a file.

The effect is ``once``: the file does not tell afterwards whether a replacement was made, because the new text may
contain the old one. After a crash the model is told that the outcome is unknown, and can read the file.
"""

from pathlib import Path
from typing import Final

from keryx.core.values.turn_states import StepEffect
from keryx.errors import ToolFailed
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.files.file_tool import PATH, FileTool, check_file
from keryx.tools.files.replace_file import check_not_git, encode, replace_file
from keryx.tools.tool import ToolCall
from keryx.tools.workspace import Workspace

EDIT_BYTES_MAX: Final = 5_000_000


class EditFile(FileTool):
    """Replaces an exact text in a file."""

    name = "edit_file"
    description = (
        "Replace a text in a file of the workspace. The old text must stand there exactly so, and only once unless "
        "all are to be replaced; take as many lines around it as make it unique."
    )
    effect: StepEffect = "once"
    parameters = {  # noqa: RUF012 - never changed
        "path": PATH,
        "old": Parameter(help="The text as it stands in the file", required=True, may_be_empty=True),
        "new": Parameter(help="What stands there afterwards", required=True, may_be_empty=True),
        "all": Parameter(kind="boolean", help="Whether to replace it wherever it stands"),
    }

    def act(self, workspace: Workspace, path: Path, call: ToolCall, given: Arguments) -> str:
        """Replace the text and return how often it was found."""
        name = workspace.shown(path)
        old, new = given.text("old"), given.text("new")
        if not old:
            raise ToolFailed("'old' is empty; to write a whole file, use write_file.")
        if old == new:
            raise ToolFailed("'old' and 'new' are the same; nothing would change.")
        check_not_git(name)
        text = _read_text(path, name)
        if old not in text and "\r\n" in text:
            old, new = _with_crlf(old), _with_crlf(new)
        count = text.count(old)
        if count == 0:
            raise ToolFailed(f"{name!r} does not contain 'old' exactly so; read the file again.")
        if count > 1 and not given.flag("all"):
            raise ToolFailed(
                f"{name!r} contains 'old' {count} times; take more lines around it, or set 'all'."
            )
        replace_file(path, encode(text.replace(old, new)), key=call.key)
        return f"{name}: replaced {'once' if count == 1 else f'{count} times'}."


def _read_text(path: Path, name: str) -> str:
    check_file(path, name, bytes_max=EDIT_BYTES_MAX)
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise ToolFailed(f"{name!r} is not UTF-8 text; only the terminal can change it.") from None


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")
