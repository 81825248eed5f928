"""How values become columns: JSON as text, and foreign labels that every database takes.

PostgreSQL refuses NUL in text and both refuse lone surrogates. What people said is kept losslessly by the codec of
``domain.message``; names, titles and reasons only have to be readable, so the odd character is replaced.
"""

import json
import re
from functools import lru_cache
from typing import Any, overload

from keryx.domain.source import Source

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_COMPACT = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
"""Made once: ``json.dumps`` would make one for every value."""


def to_json(value: Any) -> str:
    """Return compact JSON in ASCII, in which NUL and lone surrogates are escapes."""
    return _COMPACT.encode(value)


def from_json(text: str) -> Any:
    """Invert ``to_json``."""
    return json.loads(text)


@lru_cache(maxsize=512)
def source_from_json(text: str) -> Source:
    """Return the source that stands in a column; a turn asks a dozen times for the same one."""
    return Source.from_dict(from_json(text))


@overload
def clean_text(text: str) -> str: ...
@overload
def clean_text(text: None) -> None: ...
@overload
def clean_text(text: str | None) -> str | None: ...
def clean_text(text: str | None) -> str | None:
    """Return a label with what no database takes replaced by U+FFFD."""
    return text if text is None else _UNSTORABLE.sub("\ufffd", text)
