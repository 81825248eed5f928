"""Which notes the agent is told of: the newest, then those with words of what was said last, then the next newest.

Pure. The same notes and the same words give the same notes in the same order, oldest first, whatever order they come
in; as long as all notes fit, the words do not matter and what is told changes only where a note does. So prompt caches
see a prefix that stays.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

from keryx.domain.prompt import quote
from keryx.domain.tokens import tokenize

NOTES_MAX: Final = 20
NEWEST_MAX: Final = 10
"""How many of the newest are told whatever is said."""
NOTES_BYTES_MAX: Final = 6_000
"""How long all of them together may be, as they are quoted."""
SAID_LENGTH: Final = 4_000
"""How much of what was said is looked at, in characters."""

_STEM_LENGTH: Final = 5
_PLURAL_LENGTH_MIN: Final = 4


class Note(Protocol):
    """Something that was kept; later ones have higher numbers."""

    @property
    def id(self) -> int:
        """Its number."""

    @property
    def text(self) -> str:
        """What it says."""


N = TypeVar("N", bound=Note)


def recalled(notes: Iterable[N], said: str) -> list[N]:
    """Return the notes to tell the agent when ``said`` was said last, oldest first, within both bounds."""
    newest = sorted(notes, key=_number, reverse=True)
    first = newest[:NEWEST_MAX]
    relevant = rank(newest, said)
    chosen: dict[int, N] = {}
    room = NOTES_BYTES_MAX
    for note in (*first, *relevant, *newest):
        if note.id in chosen or len(chosen) == NOTES_MAX:
            continue
        size = quoted_bytes(note)
        if size <= room:
            chosen[note.id] = note
            room -= size
    return sorted(chosen.values(), key=_number)


def rank(notes: Sequence[N], said: str) -> list[N]:
    """Return the notes that have a word of ``said``, best first: rare words count for more, then the newest wins."""
    wanted = set(_stems(said[:SAID_LENGTH])) if notes else set()
    if not wanted:
        return []
    found = {note.id: wanted & set(_stems(note.text)) for note in notes}
    holders = Counter(word for words in found.values() for word in words)
    # Whole numbers, so that the order is the same on every machine.
    scores = {
        number: sum(len(notes) * 1_000 // holders[word] for word in words) for number, words in found.items()
    }
    return sorted(
        (note for note in notes if scores[note.id]), key=lambda note: (scores[note.id], note.id), reverse=True
    )


def fingerprint(text: str) -> str:
    """Return what two notes share that say the same, however they are spaced, capitalised and punctuated at the end."""
    said = " ".join(text.casefold().split()).rstrip(".!… ")
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def quoted_bytes(note: Note) -> int:
    """Return how long a note is where the agent reads it."""
    return len(quote(note.text).encode("utf-8", "surrogatepass"))


def _number(note: Note) -> int:
    return note.id


def _stems(text: str) -> list[str]:
    """Return the words of a text, their endings cut, so that ``trains`` is found by ``train``."""
    tokens = tokenize(text)
    return [_stem(word) for word in (*tokens.words, *(pair for _, pair in tokens.extras))]


def _stem(word: str) -> str:
    if not word.isascii():
        return word
    if len(word) >= _PLURAL_LENGTH_MIN:
        word = word.removesuffix("s")
    return word[:_STEM_LENGTH]
