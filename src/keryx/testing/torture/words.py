"""What is said under torture, and how to read it: every question and every answer can be told from all others.

A question carries its own token, the canary of its chat and what it wishes; an answer quotes the tokens it answers, and
carries the canary it found in the questions. Whatever is not of this form is said by Keryx itself.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, get_args

from keryx.values import dataclass

Wish: TypeAlias = Literal["once", "pure", "long", "slow"]
"""A tool call that may run once, one that may run again, an answer of several pieces, one that takes its time."""
WISHES: Final[tuple[Wish, ...]] = get_args(Wish)

LONG_PARAGRAPHS: Final = 90
_PARAGRAPH_WORDS: Final = 50

_QUESTION: Final = re.compile(r"\[(?P<token>[\w-]+)\] (?P<canary>canary-[0-9a-f]+)(?P<wishes>(?: \w+)*)")
_ANSWER: Final = re.compile(r"answering((?: \[[\w-]+\])+) canary-[0-9a-f]+\n")
_CANARY: Final = re.compile(r"canary-[0-9a-f]+")
_TOKEN: Final = re.compile(r"\[([\w-]+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a chat asks."""

    token: str
    canary: str
    wishes: tuple[Wish, ...] = ()

    def text(self) -> str:
        """Return it as it is said."""
        return " ".join([f"[{self.token}]", self.canary, *self.wishes])


def read_question(text: str) -> Question | None:
    """Return the question in a text, or None where there is none."""
    found = _QUESTION.search(text)
    if found is None:
        return None
    said = found["wishes"].split()
    return Question(
        token=found["token"], canary=found["canary"], wishes=tuple(wish for wish in WISHES if wish in said)
    )


def make_answer(questions: Iterable[Question]) -> str:
    """Return the answer to some questions; every paragraph of a long one carries the canary."""
    asked = list(questions)
    canary, last = asked[-1].canary, asked[-1].token
    lines = [f"answering {' '.join(f'[{each.token}]' for each in asked)} {canary}"]
    if any("long" in each.wishes for each in asked):
        lines += [f"{canary} {number} " + "word " * _PARAGRAPH_WORDS for number in range(LONG_PARAGRAPHS)]
    return "\n\n".join([*lines, f"{canary} {ending(last)}"])


def ending(token: str) -> str:
    """Return the last words of an answer, without which it is cut off."""
    return f"that was all for [{token}]"


def read_answer(text: str) -> list[str]:
    """Return the tokens that an answer quotes; none where Keryx itself speaks."""
    found = _ANSWER.match(text)
    return _TOKEN.findall(found[1]) if found else []


def canaries(text: str) -> set[str]:
    """Return every canary in a text."""
    return set(_CANARY.findall(text))
