"""Choose the notes for the prompt: the newest, then those that share words with the last message, then others.

Pure. The same notes and words give the same choice, oldest first, whatever the order of the input. As long as all
notes fit, the words do not matter, and the choice changes only if a note changes. So prompt caches see a stable
prefix.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

from keryx.core.context.rules.prompt import quote
from keryx.core.search.rules.tokens import tokenize

NOTES_MAX: Final = 20
NEWEST_MAX: Final = 10
"""How many of the newest notes are chosen regardless of the message."""
NOTES_BYTES_MAX: Final = 6_000
"""How many bytes all chosen notes may take when quoted."""
SAID_LENGTH: Final = 4_000
"""How many characters of the message are compared."""

_STEM_LENGTH: Final = 5
_PLURAL_LENGTH_MIN: Final = 4


class Note(Protocol):
    """A stored note; later notes have higher numbers."""

    @property
    def id(self) -> int:
        """The note's number."""

    @property
    def text(self) -> str:
        """The note's text."""


N = TypeVar("N", bound=Note)


def choose_notes(notes: Iterable[N], said: str) -> list[N]:
    """Return the notes for the prompt if ``said`` is the last message, oldest first, within both bounds."""
    newest = sorted(notes, key=_number, reverse=True)
    first = newest[:NEWEST_MAX]
    relevant = rank_notes(newest, said)
    chosen: dict[int, N] = {}
    room = NOTES_BYTES_MAX
    for note in (*first, *relevant, *newest):
        if note.id in chosen or len(chosen) == NOTES_MAX:
            continue
        size = quoted_size_bytes(note)
        if size <= room:
            chosen[note.id] = note
            room -= size
    return sorted(chosen.values(), key=_number)


def rank_notes(notes: Sequence[N], said: str) -> list[N]:
    """Return the notes that share a word with ``said``, best first: rare words count more, then the newest wins."""
    wanted = set(_stems(said[:SAID_LENGTH])) if notes else set()
    if not wanted:
        return []
    found = {note.id: wanted & set(_stems(note.text)) for note in notes}
    holders = Counter(word for words in found.values() for word in words)
    # Integers, so that the order is the same on every machine.
    scores = {
        number: sum(len(notes) * 1_000 // holders[word] for word in words) for number, words in found.items()
    }
    return sorted(
        (note for note in notes if scores[note.id]), key=lambda note: (scores[note.id], note.id), reverse=True
    )


def fingerprint(text: str) -> str:
    """Return a hash that is equal for texts that differ only in spacing, capitals and punctuation at the end."""
    said = " ".join(text.casefold().split()).rstrip(".!… ")
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def quoted_size_bytes(note: Note) -> int:
    """Return the length of a note in the prompt."""
    return len(quote(note.text).encode("utf-8", "surrogatepass"))


def _number(note: Note) -> int:
    return note.id


def _stems(text: str) -> list[str]:
    """Return the words of a text with their endings cut, so that ``train`` finds ``trains``."""
    tokens = tokenize(text)
    return [_stem(word) for word in (*tokens.words, *(pair for _, pair in tokens.extras))]


def _stem(word: str) -> str:
    if not word.isascii():
        return word
    if len(word) >= _PLURAL_LENGTH_MIN:
        word = word.removesuffix("s")
    return word[:_STEM_LENGTH]
