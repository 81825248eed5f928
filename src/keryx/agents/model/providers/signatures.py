"""Data that a provider wants back untouched (signatures and ids), stored as the ``signature`` of a thinking part.

Only the provider that gave the data gets it back. Pure.
"""

from collections.abc import Mapping
from json import dumps, loads
from typing import Any, Final

from keryx.core.conversations.rules.message import ThinkingPart
from keryx.core.values.json_value import check_json

_FIELDS: Final = {"id": "id", "sig": "signature", "details": "provider_details"}


def pack_signature(provider: str | None, fields: Mapping[str, Any]) -> str | None:
    """Return the data for a provider as one text; None if no provider would recognise it."""
    if provider is None:
        return None
    return dumps({"by": provider, **json_fields(fields)}, separators=(",", ":"))


def json_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value and can be stored as JSON."""
    stored = {}
    for name, value in fields.items():
        try:
            check_json(value, where=name)
        except ValueError:
            continue  # a provider sends its data as JSON, so it reads nothing else back
        if value is not None:
            stored[name] = value
    return stored


def unpack_signature(part: ThinkingPart, *, provider: str) -> dict[str, Any] | None:
    """Return the data that a thinking part stores for this provider; None if it stores none."""
    try:
        stored = loads(part.signature or "")
    except ValueError:
        return None
    return stored if isinstance(stored, dict) and stored.get("by") == provider else None


def part_fields(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored data as arguments for a part of pydantic-ai."""
    return {_FIELDS[name]: value for name, value in stored.items() if name in _FIELDS}
