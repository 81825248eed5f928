"""Decide who may name a session, and make a title from the first user message.

Only a person overwrites a person's title.
"""

from collections.abc import Sequence
from typing import Final, Literal

from keryx.core.conversations.rules.message import text_of
from keryx.core.conversations.rules.part import Part
from keryx.core.values.graphemes import cut, one_line
from keryx.errors import InvalidValue

TitleBy = Literal["person", "text", "model"]

TITLE_LENGTH: Final = 64
PERSON_TITLE_LENGTH_MAX: Final = 200

MODEL_TITLE_MESSAGES_MAX: Final = 100
"""The model makes titles only up to this many messages: later, people know the conversation by its title."""

_RANK: Final[dict[TitleBy, int]] = {"person": 3, "model": 2, "text": 1}
_MARKS: Final = ".\"'`*_#„“”«»‘’「」 "


def may_retitle(current_by: TitleBy | None, new_by: TitleBy) -> bool:
    """Return whether a title by ``new_by`` replaces a title by ``current_by`` (None: no title)."""
    if current_by is None or new_by == "person":
        return True
    return _RANK[new_by] > _RANK[current_by]


def title_from(parts: tuple[Part, ...]) -> str | None:
    """Return the title from a session's first user message, or None if the message has no text."""
    return one_line(text_of(parts), TITLE_LENGTH) or None


def model_title_due(current_by: TitleBy | None, *, messages: int) -> bool:
    """Return whether to ask the model for a title at the end of an exchange: only in a young conversation."""
    return may_retitle(current_by, "model") and messages <= MODEL_TITLE_MESSAGES_MAX


def model_title_of(answer: str) -> str | None:
    """Return the title in a model's answer: the first line with text, without quotes and marks; None for no title."""
    lines = (one_line(line.strip(_MARKS), TITLE_LENGTH) for line in answer.splitlines())
    return next(filter(None, lines), None)


def clean_title(text: str) -> str:
    """Return a person's or a model's title on one line; raise InvalidValue if the title is empty."""
    title = " ".join(text.split())
    if not title:
        raise InvalidValue("the title is empty; give at least one visible character")
    return cut(title, PERSON_TITLE_LENGTH_MAX)


def match_titles(titles: Sequence[str | None], wanted: str) -> list[int]:
    """Return the indices of the titles that equal ``wanted``, else those that begin with it, else contain it."""
    name = " ".join(wanted.split()).casefold()
    folded = [(title or "").casefold() for title in titles]
    for fits in (name.__eq__, lambda title: title.startswith(name), lambda title: name in title):
        found = [index for index, title in enumerate(folded) if title and fits(title)]
        if found:
            return found
    return []
