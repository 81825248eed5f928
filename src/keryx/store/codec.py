"""Convert values to columns: JSON as text, and foreign labels in a form that every database accepts.

PostgreSQL refuses NUL in text, and both databases refuse lone surrogates. The codec of
``conversations.rules.message`` stores messages without loss. Names, titles and reasons only have to be readable, so
such a character is replaced in them.
"""

import json
import re
from functools import lru_cache
from typing import Any, TypeVar

from keryx.core.conversations.rules.source import Source

Text = TypeVar("Text", str, str | None)

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_COMPACT = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
"""Created once, because ``json.dumps`` with options creates an encoder for every value."""


def to_json(value: Any) -> str:
    """Return compact JSON in ASCII, in which NUL and lone surrogates are escapes."""
    return _COMPACT.encode(value)


def from_json(text: str) -> Any:
    """Return the value that ``to_json`` wrote."""
    return json.loads(text)


def source_to_json(source: Source) -> str:
    """Return a source as a column stores it."""
    return to_json(source.to_dict())


@lru_cache(maxsize=512)
def source_from_json(text: str) -> Source:
    """Return the source stored in a column. Cached, because a turn reads the same source a dozen times."""
    return Source.from_dict(from_json(text))


def clean_text(text: Text) -> Text:
    """Return a label in which U+FFFD replaces the characters that a database refuses."""
    return text and _UNSTORABLE.sub("\ufffd", text)


def clean_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a row with every text cleaned."""
    return {name: clean_text(value) if isinstance(value, str) else value for name, value in columns.items()}
