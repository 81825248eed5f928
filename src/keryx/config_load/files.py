"""Read and write the files of settings. A file is replaced whole or not at all."""

import os
import stat
from pathlib import Path
from tempfile import NamedTemporaryFile

from keryx.errors import InvalidValue

_OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO


def read_text(path: Path, *, private: bool = False) -> str | None:
    """Return a file's text, or None if the file does not exist; raise ``InvalidValue`` if it cannot be read.

    A ``private`` file is refused if other users can read it.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            mode = os.fstat(file.fileno()).st_mode
            if private and os.name == "posix" and mode & _OTHER_USERS:
                raise InvalidValue(
                    f"{path}: other users can read these secrets (mode {stat.S_IMODE(mode):04o}); run: chmod 600 {path}"
                )
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidValue(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InvalidValue(f"{path}:{line}: this is not UTF-8; save the file in that encoding") from error


def replace_file(path: Path, text: str) -> None:
    """Replace a file's content, also through a link; only its owner may read a new file."""
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
