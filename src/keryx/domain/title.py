"""Who may name a session, and the title made from what a user said first.

A person's title is never overwritten by anything but a person.
"""

from collections.abc import Sequence
from typing import Final, Literal

from keryx.domain.graphemes import cut, one_line
from keryx.domain.message import text_of
from keryx.domain.part import Part
from keryx.errors import InvalidValue

TitleBy = Literal["person", "text", "model"]

TITLE_LENGTH: Final = 64
PERSON_TITLE_LENGTH_MAX: Final = 200

_RANK: Final[dict[TitleBy, int]] = {"person": 3, "text": 2, "model": 1}


def may_retitle(current_by: TitleBy | None, new_by: TitleBy) -> bool:
    """Say whether a title by ``new_by`` replaces the one by ``current_by`` (None: there is none)."""
    if current_by is None or new_by == "person":
        return True
    return _RANK[new_by] > _RANK[current_by]


def title_from(parts: tuple[Part, ...]) -> str | None:
    """Return the title that a session's first user message gives it, or None when that has no text."""
    return one_line(text_of(parts), TITLE_LENGTH) or None


def model_title_due(current_by: TitleBy | None, *, user_messages: int, assistant_messages: int) -> bool:
    """Say whether the model is to be asked for a title: after the first exchange, when nothing else gave one."""
    return may_retitle(current_by, "model") and user_messages > 0 and assistant_messages > 0


def clean_title(text: str) -> str:
    """Return a person's or a model's title on one line; raises InvalidValue when nothing is left of it."""
    title = " ".join(text.split())
    if not title:
        raise InvalidValue("the title is empty; give at least one visible character")
    return cut(title, PERSON_TITLE_LENGTH_MAX)


def titled(titles: Sequence[str | None], wanted: str) -> list[int]:
    """Return which of the titles are meant: those that are so, else those that begin so, else those that hold it."""
    name = " ".join(wanted.split()).casefold()
    folded = [(title or "").casefold() for title in titles]
    for fits in (name.__eq__, lambda title: title.startswith(name), lambda title: name in title):
        found = [index for index, title in enumerate(folded) if title and fits(title)]
        if found:
            return found
    return []
