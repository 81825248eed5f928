"""The folder that file tools and commands work in. No path that a tool is given leads out of the workspace.

Every link of a path is followed before the path is judged. Keryx's own folders (its secrets, its settings and its
store) are out of reach wherever they lie.
"""

from collections.abc import Sequence
from pathlib import Path

from keryx.errors import ToolFailed
from keryx.tools.tool import ToolCall
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One folder, with every link in its path resolved."""

    root: Path
    kept_out: Sequence[Path] = ()

    def inside(self, path: str) -> Path:
        """Return the resolved path of a file in the workspace, or raise ``ToolFailed``; reads the disk."""
        try:
            found = (self.root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError):
            raise ToolFailed(f"{path[:200]!r} is not a path that can be followed.") from None
        if not found.is_relative_to(self.root):
            raise ToolFailed(
                f"{path[:200]!r} leads out of the workspace {self.root}; only files in it can be used."
            )
        if any(found.is_relative_to(folder) for folder in self.kept_out):
            raise ToolFailed(f"{path[:200]!r} is one of Keryx's own files; no tool reads or changes them.")
        return found

    def folder(self, path: str) -> Path:
        """Return the resolved path of a folder in the workspace, or raise ``ToolFailed``; reads the disk."""
        found = self.inside(path)
        if not found.is_dir():
            raise ToolFailed(f"There is no folder {path!r} in the workspace.")
        return found

    def shown(self, path: Path) -> str:
        """Return a path relative to the workspace."""
        return str(path.relative_to(self.root))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspaces:
    """The workspaces of sessions: a session's own folder, else ``default``."""

    default: Path
    kept_out: Sequence[Path] = ()

    def of(self, call: ToolCall) -> Workspace:
        """Return the workspace of the call's session, or raise ``ToolFailed``; reads the disk."""
        folder = self.default if call.workspace is None else Path(call.workspace).expanduser()
        if not folder.is_dir():
            raise ToolFailed(f"The workspace {folder} is no folder on this machine; ask for another one.")
        return Workspace(root=folder.resolve(), kept_out=[each.resolve() for each in self.kept_out])
