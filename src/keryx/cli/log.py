"""The log of a process: text for people, or one JSON object per line for programs.

Each line ends with the ids of the session, turn, delivery or inbox item that it concerns. Of an exception, only the
type and place are logged: its text may quote private messages.
"""

import json
import logging
from pathlib import Path

from keryx.config import LogFormat, LogLevel
from keryx.gateway.runtime.log import ERROR, fields_of, trace_of

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
URL_LOGGERS = ("httpx", "httpcore", "httpx2", "httpcore2")
"""Loggers that log whole URLs, which may hold keys."""


def configure_logging(level: LogLevel, form: LogFormat, *, file: Path | None = None) -> None:
    """Write the log of this process to ``file``, or else to standard error."""
    handler = logging.StreamHandler() if file is None else logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(formatter_of(form))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in URL_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)


def formatter_of(form: LogFormat) -> logging.Formatter:
    """Return the formatter for a log format."""
    return _JsonFormatter() if form == "json" else _TextFormatter(TEXT)


def _error_of(record: logging.LogRecord) -> str | None:
    """Return the type and place of the record's exception, if it has one."""
    if record.exc_info and record.exc_info[1] is not None:
        return trace_of(record.exc_info[1])
    error: str | None = getattr(record, ERROR, None)
    return error


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        record.asctime = self.formatTime(record)
        fields = "".join(f" {name}={value}" for name, value in fields_of(record).items())
        error = _error_of(record)
        return self.formatMessage(record) + fields + (f"\n{error}" if error else "")


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "at": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        error = _error_of(record)
        return json.dumps(entry | {"error": error} if error else entry)
