"""What a search text asks for, as a tree of phrases and a list of filters. ``parse_query`` makes it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from keryx.clock import Micros

FilterName = Literal["from", "in", "tag", "source", "role", "before", "after", "has", "is"]
FILTERS: Final[tuple[FilterName, ...]] = get_args(FilterName)
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "role": ("user", "assistant", "tool", "system"),
    "has": ("tool", "error", "code", "link", "image", "audio", "video", "file"),
    "is": ("open", "closed", "pinned", "archived", "deleted"),
}
"""The filters that take only certain values."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Tokens at fixed distances: a word, a phrase, or a run of characters.

    ``tokens`` are (offset, token) with rising offsets. With ``prefix`` the last token is only the beginning of one.
    """

    tokens: tuple[tuple[int, str], ...]
    prefix: bool = False
    run: str = field(default="", compare=False)
    """The phrase as text, if it is one run of characters of a script without spaces: such a run is found literally."""

    @property
    def lookup_tokens(self) -> tuple[tuple[int, str], ...]:
        """The tokens to look up in the index. In a run, every second pair and the last cover all characters."""
        return (*self.tokens[:-1:2], self.tokens[-1]) if self.run else self.tokens


@dataclass(frozen=True, slots=True)
class Negation:
    """Texts that do not hold ``node``."""

    node: Phrase


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Texts that match all of ``nodes``."""

    nodes: tuple[Phrase | Negation, ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Texts that match at least one of ``nodes``; without nodes, all texts."""

    nodes: tuple[Conjunction, ...]


QueryNode: TypeAlias = Phrase | Negation | Conjunction | Disjunction


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFilter:
    """One ``name:value``; ``at`` is the time meant by ``before:`` and ``after:``."""

    name: FilterName
    value: str
    negated: bool = False
    at: Micros = 0

    def __str__(self) -> str:
        value = f'"{self.value}"' if re.search(r"\s", self.value) else self.value
        return f"{'-' if self.negated else ''}{self.name}:{value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a text asks for. Filters apply to the whole query; ``notes`` say what was not understood."""

    words: Disjunction = Disjunction(())
    filters: tuple[QueryFilter, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to search for."""
        return not self.words.nodes and not self.filters

    def positive_phrases(self) -> Iterator[Phrase]:
        """Yield the phrases to rank by and to highlight: all but the negated ones."""
        for alternative in self.words.nodes:
            yield from (node for node in alternative.nodes if isinstance(node, Phrase))
