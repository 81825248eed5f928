"""Explain to the owner why an MCP server does not work, with the last line of its error log."""

from pathlib import Path
from typing import Final

from keryx.core.values.graphemes import one_line

LINE_MAX: Final = 300


def error_kind(error: BaseException) -> str:
    """Return the class of an error, without its message, which may quote foreign texts."""
    return type(_first(error)).__name__


def explain_error(error: BaseException, line: str, *, start_seconds: float) -> str:
    """Return why a server does not work; ``line`` is the last line of its log, or empty."""
    match _first(error):
        case TimeoutError():
            return f"it did not list its tools within {start_seconds:g} s."
        case _ if line:
            return line
        case OSError(strerror=str(reason)):
            return f"{reason}."
        case _:
            return f"it ended, or did not answer as such a server does ({error_kind(error)})."


def log_size(path: Path) -> int:
    """Return the size of a log in bytes; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def last_line(path: Path, *, since: int) -> str:
    """Return the last line that was added to a log since it had so many bytes, or an empty text."""
    size = log_size(path)
    if not size:
        return ""
    with path.open("rb") as file:
        # A log that is shorter than before was begun again.
        file.seek(max(since if since <= size else 0, size - 4 * LINE_MAX))
        lines = file.read().decode("utf-8", "replace").split("\n")
    shown = ["".join(char if char.isprintable() else " " for char in line) for line in lines]
    return one_line(next((line for line in reversed(shown) if line.strip()), ""), LINE_MAX)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
