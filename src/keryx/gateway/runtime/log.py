"""Log lines that say whom they concern, and never what was said.

A line bears the ids of its session, turn, delivery and inbox item as fields, whoever writes it. No message's text and
nobody's name is logged; of a failure only its kind and place are told, because foreign code quotes what it was given.
"""

import logging
import traceback
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

FIELDS: Final = ("session", "turn", "delivery", "inbox")
ERROR: Final = "error"
"""Under this name a record bears where something failed."""

_concerned: ContextVar[Mapping[str, object]] = ContextVar("keryx_log_fields")


class Log(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records bear the ids of what is being worked on; further ones are given as ``extra``."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the fields."""
        return msg, {**kwargs, "extra": {**_concerned.get({}), **(kwargs.get("extra") or {})}}

    def failed(self, message: str, *args: object, error: BaseException, **extra: object) -> None:
        """Log that something failed, and where."""
        self.error(message, *args, extra={**extra, ERROR: trace_of(error)}, stacklevel=2)


def log_of(name: str) -> Log:
    """Return the log of a part of the gateway."""
    return Log(logging.getLogger(f"keryx.gateway.{name}"), None)


@contextmanager
def concerning(**ids: object) -> Iterator[None]:
    """Let every line that is logged meanwhile, here and in tasks begun here, bear these ids; None is left out."""
    known = {name: value for name, value in ids.items() if value is not None}
    token = _concerned.set({**_concerned.get({}), **known})
    try:
        yield
    finally:
        _concerned.reset(token)


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return the ids a record bears, or those of what is being worked on now, in the order of ``FIELDS``."""
    borne = {**_concerned.get({}), **vars(record)}
    return {name: borne[name] for name in FIELDS if name in borne}


def trace_of(error: BaseException) -> str:
    """Return the kinds of an error and of what caused it, and the places they came through, without their words."""
    lines: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        lines += [type(cause).__qualname__, *traceback.format_tb(cause.__traceback__)]
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\n".join(line.rstrip("\n") for line in lines)
