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

MODEL_TITLE_MESSAGES_MAX: Final = 100
"""In how long a conversation the model is still asked: later, people know it by the name it has."""

_RANK: Final[dict[TitleBy, int]] = {"person": 3, "model": 2, "text": 1}
_MARKS: Final = ".\"'`*_#„“”«»‘’「」 "


def may_retitle(current_by: TitleBy | None, new_by: TitleBy) -> bool:
    """Say whether a title by ``new_by`` replaces the one by ``current_by`` (None: there is none)."""
    if current_by is None or new_by == "person":
        return True
    return _RANK[new_by] > _RANK[current_by]


def title_from(parts: tuple[Part, ...]) -> str | None:
    """Return the title that a session's first user message gives it, or None when that has no text."""
    return one_line(text_of(parts), TITLE_LENGTH) or None


def model_title_due(current_by: TitleBy | None, *, messages: int) -> bool:
    """Say whether the model is to be asked for a title at the end of an exchange: while the conversation is young."""
    return may_retitle(current_by, "model") and messages <= MODEL_TITLE_MESSAGES_MAX


def model_title_of(answer: str) -> str | None:
    """Return the title in a model's answer: its first line, without the quotes and marks models like; None for none."""
    lines = (one_line(line.strip(_MARKS), TITLE_LENGTH) for line in answer.splitlines())
    return next(filter(None, lines), None)


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
