"""A file is replaced whole or not at all."""

import os
import stat
from pathlib import Path
from tempfile import NamedTemporaryFile

from keryx.errors import InvalidValue


def replace_file(path: Path, text: str) -> None:
    """Put ``text`` in the place of what ``path`` held, through a link too; a new file is for its owner alone."""
    path = path.resolve()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = Path(file.name)
            try:
                file.write(text)
                file.flush()
                if path.exists():
                    temporary.chmod(stat.S_IMODE(path.stat().st_mode))
                os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                temporary.unlink()
                raise
        _sync_folder(path.parent)
    except OSError as error:
        raise InvalidValue(f"{path}: cannot be written: {error.strerror}; nothing was changed") from error


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
