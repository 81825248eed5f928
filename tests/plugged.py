"""Metadata of packages that declare plug-ins, without any code."""

from pathlib import Path


def declare(folder: Path, group: str, **plugins: str) -> str:
    """Write the metadata of a package with these entry points, and return the folder to put on Python's path."""
    metadata = folder / "declared-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in plugins.items()]
    (metadata / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    return str(folder)


def declare_platforms(folder: Path, *names: str) -> str:
    """Write the metadata of a package with these platforms, and return the folder to put on Python's path."""
    return declare(folder, "keryx.platforms", **dict.fromkeys(names, "nowhere:PLUGIN"))
