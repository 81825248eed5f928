"""Network file systems are refused for a SQLite file."""

from pathlib import Path

import pytest

from keryx.errors import StoreUnsafe
from keryx.store.filesystem import refuse_network

MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local xfs rw 0 0
//nas/my\\040files /mnt/my\\040files cifs rw 0 0
/dev/vdc /over ext4 rw 0 0
host:/over /over fuse.sshfs rw 0 0
nonsense
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mounts"
    path.write_text(MOUNTS)
    return path


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("/home", "nfs4"), ("/home/ana/keryx", "nfs4"), ("/mnt/my files/x", "cifs"), ("/over", "fuse.sshfs")],
)
def test_a_network_file_system_is_refused_and_named(mounts: Path, folder: str, kind: str) -> None:
    with pytest.raises(StoreUnsafe, match=rf"network file system \({kind}\)"):
        refuse_network(Path(folder), mounts=mounts)


@pytest.mark.parametrize("folder", ["/", "/var/lib", "/home/local/keryx", "/homes", "/mnt"])
def test_a_local_file_system_is_accepted(mounts: Path, folder: str) -> None:
    refuse_network(Path(folder), mounts=mounts)


def test_without_readable_mounts_nothing_is_refused(tmp_path: Path) -> None:
    refuse_network(Path("/home"), mounts=tmp_path / "missing")


def test_this_machine_s_temporary_folder_is_accepted(tmp_path: Path) -> None:
    refuse_network(tmp_path)
