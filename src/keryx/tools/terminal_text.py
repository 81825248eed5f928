"""What a program wrote at a terminal, as plain text."""

import re
from typing import Final

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")


def plain_text(text: str) -> str:
    """Return a text without a terminal's control codes and line ends."""
    return _ESCAPES.sub("", text).replace("\r\n", "\n")
