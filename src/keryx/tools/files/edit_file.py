"""``edit_file``: replace an exact text in a file.

The effect is ``once``: the new text may contain the old one, so the file does not show afterwards whether a replacement
was made.
"""

from pathlib import Path
from typing import Final

from keryx.core.values.turn_states import StepEffect
from keryx.errors import ToolFailed
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.files.file_tool import PATH, FileTool, check_file, check_not_git, encode, replace_file
from keryx.tools.tool import ToolCall
from keryx.tools.workspace import Workspace

EDIT_BYTES_MAX: Final = 5_000_000


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
        check_not_git(name)
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
        replace_file(path, encode(text.replace(old, new)), key=call.key)
        return f"{name}: replaced {'once' if count == 1 else f'{count} times'}."
