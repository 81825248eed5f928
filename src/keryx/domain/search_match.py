"""Whether a text answers a query: the one truth for verifying what the index proposes and for scanning what is new."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from keryx.clock import Micros
from keryx.domain.part import MediaPart, Part, TextPart, ToolCallPart, ToolResultPart
from keryx.domain.search_query import All, Filter, FilterName, Node, Not, Words
from keryx.domain.tokens import Tokens, tokenize, wide
from keryx.values import dataclass


class Text:
    """A text cut into tokens, to be asked where they stand."""

    __slots__ = ("_places", "_starts", "_tokens", "_wide", "raw")

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self._tokens: Tokens | None = None
        self._wide: str | None = None
        self._places: dict[str, list[int]] | None = None
        self._starts: dict[Words, list[int]] = {}

    @property
    def words(self) -> list[str]:
        """Its words by position."""
        return self._cut().words

    def _cut(self) -> Tokens:
        if self._tokens is None:
            self._tokens = tokenize(self.raw)
        return self._tokens

    def find_run(self, run: str) -> int:
        """Where in ``wide(raw)`` a run of characters stands that are words each; -1: nowhere."""
        if self._wide is None:
            self._wide = wide(self.raw)
        return self._wide.find(run)

    def positions(self, token: str) -> list[int]:
        """Where ``token`` stands, rising."""
        words = self.words
        count = words.count(token)
        if count:
            # Jumping from one to the next beats looking at every word: most stand once or twice.
            found = [words.index(token)]
            while len(found) < count:
                found.append(words.index(token, found[-1] + 1))
            return found
        if self._places is None:
            self._places = {}
            for position, extra in self._cut().extras:
                self._places.setdefault(extra, []).append(position)
        return self._places.get(token, [])

    def positions_from(self, prefix: str) -> list[int]:
        """Where a token stands that begins with ``prefix``, rising."""
        return [position for position, word in enumerate(self.words) if word.startswith(prefix)]

    def starts(self, words: Words) -> list[int]:
        """Where ``words`` begin, rising; asked for to judge and again to highlight."""
        found = self._starts.get(words)
        if found is None:
            found = self._starts[words] = self._find(words)
        return found

    def _find(self, words: Words) -> list[int]:
        found: list[int] | None = None
        last = len(words.tokens) - 1
        for index, (offset, token) in enumerate(words.tokens):
            standing = self.positions_from(token) if words.prefix and index == last else self.positions(token)
            begins = [position - offset for position in standing] if offset else standing
            if found is None:
                found = begins
            else:
                among = set(begins)
                found = [position for position in found if position in among]
            if not found:
                return []
        return found or []


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What filters are judged by. ``role`` is None for a session's card: what is said of the session itself."""

    session_id: str
    created_at: Micros
    platform: str
    role: str | None = None
    author: str | None = None
    author_id: int | None = None
    project: str | None = None
    tags: frozenset[str] = frozenset()
    has: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()


def matches(node: Node, text: Text) -> bool:
    """Whether ``text`` answers ``node``; no words at all are answered by every text."""
    match node:
        case Words(run=run) if run:
            return text.find_run(run) >= 0
        case Words():
            return bool(text.starts(node))
        case Not():
            return not matches(node.node, text)
        case All():
            return all(matches(each, text) for each in node.nodes)
        case _:
            return not node.nodes or any(matches(each, text) for each in node.nodes)


def highlights(leaves: Iterable[Words], text: Text, *, limit: int = 32) -> list[int]:
    """Return the positions of the first ``limit`` words that answer the ``leaves`` of a query, rising."""
    shown: set[int] = set()
    for words in leaves:
        length = words.tokens[-1][0] + _width(words)
        for begin in text.starts(words)[:limit]:
            shown.update(range(begin, begin + length))
    return sorted(shown)[:limit]


def _width(words: Words) -> int:
    # A pair of characters takes two positions; a word, also a signed one like c++, takes one.
    token = words.tokens[-1][1]
    if token.isascii():
        return 1
    return len(token) if len(tokenize(token).words) == len(token) > 1 else 1


def filters_match(filters: Iterable[Filter], facts: Facts) -> bool:
    """Whether all filters let the message through.

    Where one message can have only one value (``from``, ``in``, ``source``, ``role``) several filters are
    alternatives; where it can have many (``tag``, ``has``, ``is``) all must hold.
    """
    wanted: dict[str, bool] = {}
    for each in filters:
        holds = _holds(each, facts)
        if each.negated:
            if holds:
                return False
        elif each.name in ("from", "in", "source", "role"):
            wanted[each.name] = wanted.get(each.name, False) or holds
        elif not holds:
            return False
    return all(wanted.values())


def _holds(given: Filter, facts: Facts) -> bool:
    return _JUDGES[given.name](given, facts)


def is_author(value: str, *, author: str | None, author_id: int | None) -> bool:
    """Whether ``value`` names the author: all its words are in the name, or it is the person's number."""
    if author_id is not None and value == str(author_id):
        return True
    wanted = tokenize(value).words
    return bool(wanted) and author is not None and set(wanted) <= set(tokenize(author).words)


def same(one: str, other: str) -> bool:
    """Whether two names are the same to a person: case, accents and signs do not count."""
    return one == other or (tokenize(one).words == tokenize(other).words != [])


_JUDGES: Final[dict[FilterName, Callable[[Filter, Facts], bool]]] = {
    "before": lambda given, facts: facts.created_at < given.at,
    "after": lambda given, facts: facts.created_at >= given.at,
    "from": lambda given, facts: is_author(given.value, author=facts.author, author_id=facts.author_id),
    "in": lambda given, facts: (
        given.value == facts.session_id or (facts.project is not None and same(given.value, facts.project))
    ),
    "tag": lambda given, facts: any(same(given.value.removeprefix("#"), tag) for tag in facts.tags),
    "source": lambda given, facts: same(given.value, facts.platform),
    "role": lambda given, facts: given.value == facts.role,
    "has": lambda given, facts: given.value in facts.has,
    "is": lambda given, facts: given.value in facts.states,
}


def features(parts: tuple[Part, ...]) -> frozenset[str]:
    """Return what ``has:`` finds in the message."""
    found: set[str] = set()
    for part in parts:
        match part:
            case TextPart(text=text):
                if "```" in text:
                    found.add("code")
                if "http://" in text or "https://" in text:
                    found.add("link")
            case ToolCallPart():
                found.add("tool")
            case ToolResultPart(is_error=is_error):
                found.update(("tool", "error") if is_error else ("tool",))
            case MediaPart(media_type=media_type):
                kind = media_type.partition("/")[0]
                found.add(kind if kind in ("image", "audio", "video") else "file")
            case _:
                pass
    return frozenset(found)


def window(positions: Sequence[int], *, size: int) -> int:
    """Return the index in ``positions`` (rising) from which ``size`` words hold the most of them; first wins."""
    if positions[-1] - positions[0] < size:
        return 0
    best, best_count = 0, 0
    for index, position in enumerate(positions):
        count = bisect_left(positions, position + size) - index
        if count > best_count:
            best, best_count = index, count
    return best
