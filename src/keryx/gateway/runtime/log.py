"""Log lines with the ids of their session, turn, delivery and inbox item, whichever module writes them.

No line contains the text of a message or a person's name. A failure is logged with its type and its place only, because
the messages of other libraries' exceptions quote their input.
"""

import logging
import traceback
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

FIELDS: Final = ("session", "turn", "delivery", "inbox")
ERROR: Final = "error"
"""The attribute of a record for the place of a failure."""

_ids: ContextVar[Mapping[str, object]] = ContextVar("keryx_log_fields")


class Log(logging.LoggerAdapter[logging.Logger]):
    """A logger that adds the ids of ``log_ids`` to its records, and those in ``extra``."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the ids."""
        return msg, {**kwargs, "extra": {**_ids.get({}), **(kwargs.get("extra") or {})}}

    def failed(self, message: str, *args: object, error: BaseException, **extra: object) -> None:
        """Log a failure and its place."""
        self.error(message, *args, extra={**extra, ERROR: trace_of(error)}, stacklevel=2)


def log_of(name: str) -> Log:
    """Return the log of a part of the gateway."""
    return Log(logging.getLogger(f"keryx.gateway.{name}"), None)


@contextmanager
def log_ids(**ids: object) -> Iterator[None]:
    """Add these ids, without None, to every line that this block, or a task started in it, logs."""
    known = {name: value for name, value in ids.items() if value is not None}
    token = _ids.set({**_ids.get({}), **known})
    try:
        yield
    finally:
        _ids.reset(token)


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return the ids of a record, or the current ``log_ids``, in the order of ``FIELDS``."""
    values = {**_ids.get({}), **vars(record)}
    return {name: values[name] for name in FIELDS if name in values}


def trace_of(error: BaseException) -> str:
    """Return the types and tracebacks of an error and its causes, without their messages."""
    lines: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        lines += [type(cause).__qualname__, *traceback.format_tb(cause.__traceback__)]
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\n".join(line.rstrip("\n") for line in lines)
