"""The texts of a torture run: every question and every answer can be distinguished from all others.

A question contains its token, the canary of its chat and its traits. An answer quotes the tokens that it answers, and
contains the canary of the questions. Keryx itself writes all other texts.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, get_args

from keryx.values import dataclass

Trait: TypeAlias = Literal["once", "pure", "long", "slow"]
"""A tool call that may run once, one that may run again, an answer of several pieces, a slow answer."""
TRAITS: Final[tuple[Trait, ...]] = get_args(Trait)

LONG_PARAGRAPHS: Final = 90
_PARAGRAPH_WORDS: Final = 50

_QUESTION: Final = re.compile(r"\[(?P<token>[\w-]+)\] (?P<canary>canary-[0-9a-f]+)(?P<traits>(?: \w+)*)")
_ANSWER: Final = re.compile(r"answering((?: \[[\w-]+\])+) canary-[0-9a-f]+\n")
_CANARY: Final = re.compile(r"canary-[0-9a-f]+")
_TOKEN: Final = re.compile(r"\[([\w-]+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of a chat."""

    token: str
    canary: str
    traits: tuple[Trait, ...] = ()

    def text(self) -> str:
        """Return the text of the question."""
        return " ".join([f"[{self.token}]", self.canary, *self.traits])


def read_question(text: str) -> Question | None:
    """Return the question in a text, or None."""
    found = _QUESTION.search(text)
    if found is None:
        return None
    said = found["traits"].split()
    return Question(
        token=found["token"], canary=found["canary"], traits=tuple(trait for trait in TRAITS if trait in said)
    )


def make_answer(questions: Iterable[Question]) -> str:
    """Return the answer to the questions; every paragraph of a long answer contains the canary."""
    asked = list(questions)
    canary, last = asked[-1].canary, asked[-1].token
    lines = [f"answering {' '.join(f'[{each.token}]' for each in asked)} {canary}"]
    if any("long" in each.traits for each in asked):
        lines += [f"{canary} {number} " + "word " * _PARAGRAPH_WORDS for number in range(LONG_PARAGRAPHS)]
    return "\n\n".join([*lines, f"{canary} {ending(last)}"])


def ending(token: str) -> str:
    """Return the last words of an answer; an answer without them was cut off."""
    return f"that was all for [{token}]"


def read_answer(text: str) -> list[str]:
    """Return the tokens that an answer quotes; none for a text of Keryx itself."""
    found = _ANSWER.match(text)
    return _TOKEN.findall(found[1]) if found else []


def canaries(text: str) -> set[str]:
    """Return every canary in a text."""
    return set(_CANARY.findall(text))
