"""How a log line is written: for people as text, for programs as a JSON object a line.

Either way it ends with the ids it concerns. Of an error no words are written: somebody may have said them in private.
"""

import json
import logging

from keryx.config import LogFormat
from keryx.gateway.runtime.log import ERROR, fields_of, trace_of

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def formatter_of(form: LogFormat) -> logging.Formatter:
    """Return what writes log lines in this form."""
    return _JsonFormatter() if form == "json" else _TextFormatter(TEXT)


def _error_of(record: logging.LogRecord) -> str | None:
    """Return where something failed; whatever words an error holds, somebody may have said them."""
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
        if error:
            entry["error"] = error
        return json.dumps(entry)
