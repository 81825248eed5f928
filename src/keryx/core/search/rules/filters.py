"""Whether the filters of a query let a message or a session card through."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from keryx.clock import Micros
from keryx.core.conversations.rules.part import MediaPart, Part, TextPart, ToolCallPart, ToolResultPart
from keryx.core.search.rules.query import FilterName, QueryFilter
from keryx.core.search.rules.tokens import tokenize


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """The facts that filters compare. ``role`` is None for a session card."""

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


def filters_match(filters: Iterable[QueryFilter], facts: DocumentFacts) -> bool:
    """Return whether all filters let the document through.

    Filters for facts with one value (``from``, ``in``, ``source``, ``role``) are alternatives. Of filters for facts
    with many values (``tag``, ``has``, ``is``) all must match.
    """
    alternatives: dict[str, bool] = {}
    for each in filters:
        is_match = _TESTS[each.name](each, facts)
        if each.negated:
            if is_match:
                return False
        elif each.name in ("from", "in", "source", "role"):
            alternatives[each.name] = alternatives.get(each.name, False) or is_match
        elif not is_match:
            return False
    return all(alternatives.values())


def is_author(value: str, *, author: str | None, author_id: int | None) -> bool:
    """Return whether ``value`` names the author: all its words are in the name, or it is the person's id."""
    if author_id is not None and value == str(author_id):
        return True
    wanted = tokenize(value).words
    return bool(wanted) and author is not None and set(wanted) <= set(tokenize(author).words)


def same_name(one: str, other: str) -> bool:
    """Return whether two names are equal but for case, accents and signs."""
    return one == other or (tokenize(one).words == tokenize(other).words != [])


_TESTS: Final[dict[FilterName, Callable[[QueryFilter, DocumentFacts], bool]]] = {
    "before": lambda given, facts: facts.created_at < given.at,
    "after": lambda given, facts: facts.created_at >= given.at,
    "from": lambda given, facts: is_author(given.value, author=facts.author, author_id=facts.author_id),
    "in": lambda given, facts: (
        given.value == facts.session_id
        or (facts.project is not None and same_name(given.value, facts.project))
    ),
    "tag": lambda given, facts: any(same_name(given.value.removeprefix("#"), tag) for tag in facts.tags),
    "source": lambda given, facts: same_name(given.value, facts.platform),
    "role": lambda given, facts: given.value == facts.role,
    "has": lambda given, facts: given.value in facts.has,
    "is": lambda given, facts: given.value in facts.states,
}


def features(parts: tuple[Part, ...]) -> frozenset[str]:
    """Return the values of ``has:`` that a message with these parts matches."""
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
