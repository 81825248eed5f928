"""The folder that file tools and commands work in; no path they are given leads out of it.

Paths are followed through every link before they are judged. Keryx's own folders are out of reach wherever they lie:
its secrets, its settings and its store are nobody's material.
"""

from collections.abc import Sequence
from pathlib import Path

from keryx.tools.tool import ToolFailed, Use
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One folder, as it really lies on the disk."""

    root: Path
    kept_out: Sequence[Path] = ()

    def inside(self, path: str) -> Path:
        """Return where a path leads that counts from the workspace, or raise ``ToolFailed``; reads the disk."""
        try:
            found = (self.root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError):
            raise ToolFailed(f"{path[:200]!r} is no path that can be followed.") from None
        if not found.is_relative_to(self.root):
            raise ToolFailed(
                f"{path[:200]!r} leads out of the workspace {self.root}; only what lies in it can be used."
            )
        if any(found.is_relative_to(folder) for folder in self.kept_out):
            raise ToolFailed(f"{path[:200]!r} is one of Keryx's own files; no tool reads or changes them.")
        return found

    def shown(self, path: Path) -> str:
        """Return a path as it is told: from the workspace."""
        return str(path.relative_to(self.root))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspaces:
    """Where sessions work: in a folder of their own, else in ``default``."""

    default: Path
    kept_out: Sequence[Path] = ()

    def of(self, use: Use) -> Workspace:
        """Return the workspace of the session a call is made in, or raise ``ToolFailed``; reads the disk."""
        folder = self.default if use.workspace is None else Path(use.workspace).expanduser()
        if not folder.is_dir():
            raise ToolFailed(f"The workspace {folder} is no folder on this machine; ask for another one.")
        return Workspace(root=folder.resolve(), kept_out=[each.resolve() for each in self.kept_out])
