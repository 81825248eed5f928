"""``write_file``: write a new file, or the whole content of an existing one."""

from pathlib import Path

from keryx.core.values.turn_states import StepEffect
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.files.file_tool import PATH, FileTool, check_file, check_not_git, encode, replace_file
from keryx.tools.tool import ToolCall
from keryx.tools.workspace import Workspace


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
        check_not_git(name)
        if path.exists():
            check_file(path, name, bytes_max=None)
        data = encode(given.text("content"))
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data, key=call.key)
        return f"{name} is written, {len(data)} bytes."
