"""Decide where text can be cut without splitting a visible character.

This approximates Unicode's extended grapheme clusters (UAX 29) without its tables. It may keep together
characters that could be split, but never splits an emoji sequence, flag, accent, Hangul syllable or CRLF. A run
of more than 64 joined characters is cut anyway, because hostile text stacks accents without end.
"""

import unicodedata
from typing import Final

_JOINER: Final = "\u200d"
_SCAN_BACK_MAX: Final = 64


def cut(text: str, limit: int, *, ellipsis: str = "…") -> str:
    """Return ``text`` if it has at most ``limit`` code points, else its start and ``ellipsis`` within ``limit``."""
    if len(text) <= limit:
        return text
    keep = safe_end(text, max(0, limit - len(ellipsis)))
    return text[:keep].rstrip() + ellipsis[:limit]


def one_line(text: str, limit: int) -> str:
    """Return the start of ``text`` on one line, white space folded, cut to ``limit``; do not read a long rest."""
    reach = 4 * limit
    line = " ".join(text[:reach].split())
    while len(line) <= limit and reach < len(text):
        # The text read so far is mostly white space.
        reach *= 8
        line = " ".join(text[:reach].split())
    return cut(line, limit)


def safe_end(text: str, end: int) -> int:
    """Return the largest position not after ``end`` at which ``text`` can be cut."""
    if end >= len(text):
        return len(text)
    position = end
    while position > 0 and _joined(text, position):
        position -= 1
        if end - position > _SCAN_BACK_MAX:
            return end
    return position


def _joined(text: str, position: int) -> bool:
    """Return whether the characters before and after ``position`` belong to one visible character."""
    after = text[position]
    before = text[position - 1]
    if before == "\r":
        return after == "\n"
    if after < "\u0300":
        # No character below the combining accents extends another one, and a joiner only joins symbols.
        return False
    if _extends(after) or before == _JOINER:
        return True
    if _regional(after) and _regional(before):
        return _flags_before(text, position) % 2 == 1
    return _jamo_joined(before, after)


def _extends(char: str) -> bool:
    """Return whether ``char`` extends the character before it: accent, joiner, selector, skin tone, emoji tag."""
    if (
        char in (_JOINER, "\u200c")
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
    ):
        return True
    return unicodedata.category(char) in ("Mn", "Me", "Mc")


def _regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flags_before(text: str, position: int) -> int:
    count = 0
    while count < position and _regional(text[position - count - 1]):
        count += 1
    return count


def _jamo_joined(before: str, after: str) -> bool:
    """Return whether two conjoining Hangul letters belong to one syllable block."""
    if "\u1160" <= after <= "\u11ff":
        return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    return "\u1100" <= after <= "\u115f" and "\u1100" <= before <= "\u115f"
