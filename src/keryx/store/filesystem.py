"""Which file systems cannot carry a SQLite file that several processes share.

Write-ahead logging needs shared memory and locks that work; over a network they do not, and the file is lost.
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
    """Raise ``StoreUnsafe`` when ``folder`` lies on a network file system; say nothing where it cannot be known."""
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
        # A later line hides an earlier one at the same place.
        if (folder == point or point in folder.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind
