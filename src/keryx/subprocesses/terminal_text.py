"""Convert the output of a program at a terminal to plain text."""

import re
from typing import Final

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")


def plain_text(text: str) -> str:
    """Return a text without escape sequences and with plain line ends."""
    return _ESCAPES.sub("", text).replace("\r\n", "\n")


def output_text(data: bytes, *, has_pty: bool) -> str:
    """Return a program's output as text, without escape sequences if it wrote to a terminal."""
    text = data.decode("utf-8", "replace")
    return plain_text(text) if has_pty else text
