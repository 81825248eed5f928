"""Refuse file systems on which processes cannot share a SQLite file.

Write-ahead logging needs working shared memory and locks. Network file systems do not provide them, and the file
gets damaged.
"""

import re
from pathlib import Path

from keryx.errors import StoreUnsafe

_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "9p", "ceph", "lustre", "gfs2", "ocfs2"}
    | {"fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone"}
)
_MOUNTS = Path("/proc/self/mounts")
_ESCAPE = re.compile(r"\\([0-7]{3})")


def refuse_network(folder: Path, *, mounts: Path = _MOUNTS) -> None:
    """Raise ``StoreUnsafe`` if ``folder`` is on a network file system; pass if the mounts cannot be read."""
    try:
        table = mounts.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    kind = _kind_of(folder.resolve(), table)
    if kind in _NETWORK:
        raise StoreUnsafe(
            f"{folder} is on a network file system ({kind}), on which a shared SQLite file gets damaged. "
            "Put the store on a local disk, or use postgresql://…"
        )


def _kind_of(folder: Path, table: str) -> str | None:
    best, kind = -1, None
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(_ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[1]))
        # A later mount hides an earlier one at the same mount point.
        if (folder == point or point in folder.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind
