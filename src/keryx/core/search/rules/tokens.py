"""How text becomes search tokens: the same for the index, the query and the scan of rows that are not indexed yet.

Position *i* belongs to the *i*-th word, so ``tokenize(text).words`` and ``word_spans(text)`` have the same length and
order. A change of the tokens of any text needs a new ``index_format.FORMAT``.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, NamedTuple


class Tokens(NamedTuple):
    """The tokens of a text.

    ``words[i]`` is the token at position *i*. ``extras`` are further tokens, each at the position of the word that it
    begins with: pairs of characters in scripts without spaces, and names like ``c++``.
    """

    words: list[str]
    extras: list[tuple[int, str]]


def tokenize(text: str) -> Tokens:
    """Return the tokens of ``text``; never raises, whatever the text is."""
    if not text.isascii():
        return _tokenize_unicode(widen(text))
    words = text.translate(_ASCII_FOLD).split()
    if ("++" in text or "#" in text) and _SIGNED_HINT.search(text):
        return Tokens(words, _signed_names(text, _ASCII_WORD))
    return Tokens(words, [])


def word_spans(text: str, *, limit: int | None = None) -> list[tuple[int, int]]:
    """Return the (start, end) of each word of ``tokenize(text)`` in ``compose(text)``.

    With ``limit``, return at least the spans of that many words from the beginning.
    """
    if text.isascii():
        return [match.span() for match in islice(_ASCII_WORD.finditer(text), limit)]
    found: list[tuple[int, int]] = []
    for match in _RUN.finditer(compose(text)):
        start, end = match.span()
        if match[1]:
            found.extend((index, index + 1) for index in range(start, end))
        elif fold(match[0]):
            found.append((start, end))
    return found


def word_start(text: str, position: int) -> int:
    """Return ``word_spans(text)[position][0]``, but faster."""
    if text.isascii():
        folded = text.translate(_ASCII_FOLD)
        return len(folded) - len(folded.split(None, position)[position])
    for match in _RUN.finditer(compose(text)):
        words = len(match[1]) if match[1] else bool(fold(match[0]))
        if position < words:
            return match.start() + position
        position -= words
    raise IndexError(f"the text has no word at position {position}")


def as_run(text: str) -> str:
    """Return ``widen(text)`` if all its characters belong to scripts without spaces, else ""."""
    return widen(text) if not text.isascii() and _ALL_CHARACTERS.fullmatch(compose(text)) else ""


def widen(text: str) -> str:
    """Return ``compose(text)`` with half-width Katakana made full-width, as in tokens."""
    text = compose(text)
    return _NARROW.sub(_widen_match, text) if _NARROW.search(text) else text


def compose(text: str) -> str:
    """Return ``text`` with composed characters (NFC), the form in which ``word_spans`` counts."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


@lru_cache(maxsize=8192)
def fold(word: str) -> str:
    """Return the token of one word, without case, width and accents (Latin, Greek, Cyrillic, Hebrew, Arabic)."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", word).casefold())
    # Compatibility forms bring in signs, like the slash of ½, that would split the token.
    return unicodedata.normalize("NFC", _NOT_IN_TOKEN.sub("", decomposed))


def _tokenize_unicode(text: str) -> Tokens:
    words: list[str] = []
    extras: list[tuple[int, str]] = []
    for characters, word in _RUN.findall(text):
        if not characters:
            token = fold(word)
            if token:
                words.append(token)
            continue
        position = len(words)
        words.extend(characters)
        extras.extend(enumerate(map("".join, pairwise(characters)), position))
    if ("++" in text or "#" in text) and _SIGNED_HINT.search(text):
        extras.extend(_signed_names(text, _RUN))
    return Tokens(words, extras)


def _signed_names(text: str, pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    """Return the names that end in ``++`` or ``#``, with their positions."""
    found: list[tuple[int, str]] = []
    position = 0
    for match in pattern.finditer(text):
        if pattern is _RUN and match[1]:
            position += len(match[1])
            continue
        token = fold(match[0])
        if not token:
            continue
        sign = _SIGN.match(text, match.end())
        if sign:
            found.append((position, token + sign[0]))
        position += 1
    return found


def _widen_match(match: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", match[0])


_ASCII_FOLD: Final = "".join(
    chr(code).lower() if chr(code).isalnum() or chr(code) == "_" else " " for code in range(128)
)
_ASCII_WORD: Final = re.compile(r"[0-9A-Za-z_]+")
_SIGNED_HINT: Final = re.compile(r"\w(?:\+\+|#)")
_SIGN: Final = re.compile(r"\+\+|#(?!\w)")

# Scripts written without spaces, and emoji: every character is a word.
_CHARACTERS: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"  # Thai
    "\u0e81-\u0edf"  # Lao
    "\u1000-\u1049\u1050-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17d3\u17dc-\u17e9"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"  # Hangul
    "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufad9"  # Han
    "\U00020000-\U0003ffff"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d"  # Hiragana, Katakana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u231a\u231b\u23e9-\u23f3\u23f8-\u23fa\u2600-\u27bf\u2b1b\u2b1c\u2b50\u2b55\U0001f000-\U0001faff"  # emoji
)
# Combining marks belong to their word, but Python's \w does not match them.
_STRIPPED_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0\ufe20-\ufe2f"
)
_KEPT_MARKS: Final = (
    "\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u0816-\u082d\u0859-\u085b\u08d3-\u08ff"
    "\u0900-\u0963\u0966-\u0983\u09bc-\u09cd\u09d7\u09e2\u09e3\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71\u0a75\u0a81-\u0a83"
    "\u0abc-\u0acd\u0ae2\u0ae3\u0b01-\u0b03\u0b3c-\u0b57\u0b62\u0b63\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04\u0c3e-\u0c56"
    "\u0c62\u0c63\u0c81-\u0c83\u0cbc-\u0cd6\u0ce2\u0ce3\u0d00-\u0d03\u0d3b-\u0d4d\u0d57\u0d62\u0d63\u0d82\u0d83"
    "\u0dca-\u0ddf\u0df2\u0df3\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e\u0f3f\u0f71-\u0f84\u0f86-\u0fbc"
    "\u135d-\u135f\u1712-\u1734\u180b-\u180d\u1920-\u193b\u1a17-\u1a1b\u1b00-\u1b04\u1b34-\u1b44"
)
_RUN: Final = re.compile(f"([{_CHARACTERS}]+)|((?:[^\\W{_CHARACTERS}]|[{_STRIPPED_MARKS}{_KEPT_MARKS}])+)")
_NOT_IN_TOKEN: Final = re.compile(f"[^\\w{_KEPT_MARKS}]")
_ALL_CHARACTERS: Final = re.compile(f"[{_CHARACTERS}]+")
_NARROW: Final = re.compile("[\uff66-\uff9d]")
