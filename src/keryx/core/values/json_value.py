"""JSON values as Python values that survive a round trip through JSON.

``check_json`` refuses values that JSON would change or reject: NaN, infinities, keys that are not text,
tuples, nesting beyond ``DEPTH_MAX`` (and therefore cycles), and integers that Python does not print.
"""

from collections.abc import Iterator
from json import dumps
from typing import Final, TypeAlias

from keryx.errors import InvalidValue

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

DEPTH_MAX: Final = 200
"""Below the recursion limits of the JSON encoders and decoders, with stack left for the callers."""

# Python refuses to print or read more than 4,300 decimal digits; an integer of this many bits has fewer.
_INT_BITS_MAX: Final = 14_000
_PLAIN: Final = (str, bool, type(None))


def check_json(value: object, *, where: str) -> None:
    """Raise InvalidValue, which names ``where``, unless ``value`` is a JsonValue that JSON keeps exactly."""
    if type(value) in _PLAIN:
        return
    # Depth first, so that a cycle reaches the depth bound at once.
    waiting: list[tuple[object, int]] = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        kind = type(item)
        if kind in _PLAIN:
            continue
        if kind is dict or kind is list:
            if depth > DEPTH_MAX:
                raise InvalidValue(
                    f"{where}: nested deeper than {DEPTH_MAX} levels; flatten it, or give it as text"
                )
            waiting.extend((child, depth + 1) for child in _children(item, where))
        else:
            _check_number(item, where)


def as_text(value: JsonValue) -> str:
    """Return a text unchanged, any other value as its JSON text."""
    return value if isinstance(value, str) else dumps(value, ensure_ascii=False, separators=(",", ":"))


def leaves(value: JsonValue) -> Iterator[str]:
    """Yield the keys and plain values in ``value`` as text, in order; leave out true, false and null."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, child in value.items():
            yield key
            yield from leaves(child)
    elif isinstance(value, list):
        for child in value:
            yield from leaves(child)
    elif not (value is None or isinstance(value, bool)):
        yield str(value)


def _children(item: object, where: str) -> list[object]:
    if isinstance(item, list):
        return item
    assert isinstance(item, dict)
    for key in item:
        if type(key) is not str:
            raise InvalidValue(f"{where}: the key {key!r} is not text; JSON has only text keys")
    return list(item.values())


def _check_number(item: object, where: str) -> None:
    if type(item) is int:
        if item.bit_length() > _INT_BITS_MAX:
            raise InvalidValue(
                f"{where}: a whole number of {item.bit_length()} bits is too long; give it as text"
            )
    elif type(item) is float:
        if item - item != 0:  # True only for NaN and the infinities.
            raise InvalidValue(f"{where}: {item} has no JSON form; use null or text")
    else:
        raise InvalidValue(
            f"{where}: {type(item).__name__} is not a JSON value; use lists, dicts, text and numbers"
        )
