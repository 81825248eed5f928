"""Write a file of the workspace: the whole file or nothing. An existing file keeps its mode."""

import hashlib
import os
import stat
from pathlib import Path

from keryx.errors import ToolFailed


def check_not_git(name: str) -> None:
    """Raise ``ToolFailed`` for git's own files: they say which programs git runs."""
    if any(part.casefold() == ".git" for part in Path(name).parts):
        raise ToolFailed(f"{name!r} is one of git's own files; only git changes them, in the terminal.")


def encode(text: str) -> bytes:
    """Return a text as UTF-8, or raise ``ToolFailed``."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolFailed("The text holds half a character (a lone surrogate); files are UTF-8.") from None


def replace_file(path: Path, data: bytes, *, key: str) -> None:
    """Replace the content of a file; a new file gets the mode that any program would give it."""
    # Named after the call: if the call runs again after a crash, it finds the file it left behind.
    temporary = path.with_name(f".keryx-{hashlib.sha256(key.encode()).hexdigest()[:16]}.tmp")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if path.exists():
                os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
