"""Whether a text matches a query: the one rule for candidates of the index and for rows that are not indexed yet."""

from collections.abc import Iterable

from keryx.core.search.rules.query import Conjunction, Negation, Phrase, QueryNode
from keryx.core.search.rules.tokens import Tokens, tokenize, widen


class TokenizedText:
    """A text with the positions of its tokens, which are found on demand."""

    __slots__ = ("_extra_positions", "_starts", "_tokens", "_widened", "raw")

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self._tokens: Tokens | None = None
        self._widened: str | None = None
        self._extra_positions: dict[str, list[int]] | None = None
        self._starts: dict[Phrase, list[int]] = {}

    @property
    def words(self) -> list[str]:
        """The words by position."""
        return self._tokenize().words

    def _tokenize(self) -> Tokens:
        if self._tokens is None:
            self._tokens = tokenize(self.raw)
        return self._tokens

    def find_run(self, run: str) -> int:
        """Return where a run of characters begins in ``widen(raw)``, or -1."""
        if self._widened is None:
            self._widened = widen(self.raw)
        return self._widened.find(run)

    def positions(self, token: str) -> list[int]:
        """Return the positions of ``token``, rising."""
        words = self.words
        count = words.count(token)
        if count:
            # Jumping from one to the next is faster than a loop over all words: most tokens occur once or twice.
            found = [words.index(token)]
            while len(found) < count:
                found.append(words.index(token, found[-1] + 1))
            return found
        if self._extra_positions is None:
            self._extra_positions = {}
            for position, extra in self._tokenize().extras:
                self._extra_positions.setdefault(extra, []).append(position)
        return self._extra_positions.get(token, [])

    def prefix_positions(self, prefix: str) -> list[int]:
        """Return the positions of the words that begin with ``prefix``, rising."""
        return [position for position, word in enumerate(self.words) if word.startswith(prefix)]

    def phrase_starts(self, phrase: Phrase) -> list[int]:
        """Return where ``phrase`` starts, rising. Kept, because matching and highlighting both ask."""
        found = self._starts.get(phrase)
        if found is None:
            found = self._starts[phrase] = self._find(phrase)
        return found

    def _find(self, phrase: Phrase) -> list[int]:
        found: list[int] | None = None
        last = len(phrase.tokens) - 1
        for index, (offset, token) in enumerate(phrase.tokens):
            is_prefix = phrase.prefix and index == last
            positions = self.prefix_positions(token) if is_prefix else self.positions(token)
            starts = [position - offset for position in positions] if offset else positions
            if found is None:
                found = starts
            else:
                among = set(starts)
                found = [position for position in found if position in among]
            if not found:
                return []
        return found or []


def matches(node: QueryNode, text: TokenizedText) -> bool:
    """Return whether ``text`` matches ``node``. A query without words matches every text."""
    match node:
        case Phrase(run=run) if run:
            return text.find_run(run) >= 0
        case Phrase():
            return bool(text.phrase_starts(node))
        case Negation():
            return not matches(node.node, text)
        case Conjunction():
            return all(matches(each, text) for each in node.nodes)
        case _:
            return not node.nodes or any(matches(each, text) for each in node.nodes)


def highlights(phrases: Iterable[Phrase], text: TokenizedText, *, limit: int = 32) -> list[int]:
    """Return the positions of the first ``limit`` words that belong to an occurrence of a phrase, rising."""
    shown: set[int] = set()
    for phrase in phrases:
        length = phrase.tokens[-1][0] + _width(phrase.tokens[-1][1])
        for start in text.phrase_starts(phrase)[:limit]:
            shown.update(range(start, start + length))
    return sorted(shown)[:limit]


def _width(token: str) -> int:
    # A pair of characters takes two positions. A word takes one, also one with signs like c++.
    if token.isascii():
        return 1
    return len(token) if len(tokenize(token).words) == len(token) > 1 else 1
