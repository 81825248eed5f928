"""A question of the agent at a terminal: one letter answers it, or, where the agent asks in its own words, any words.

The letter stands for the command with the question's number, so it never answers another question than the one seen.
"""

from typing import Final

from keryx.domain.approval import ASK_USER, told_time
from keryx.domain.approval_rule import describe_coverage
from keryx.domain.graphemes import cut
from keryx.views.said import OpenQuestion

COVERAGE_CHARACTERS: Final = 40
_COMMANDS: Final = {
    "y": "/approve {}",
    "yes": "/approve {}",
    "s": "/approve {} session",
    "a": "/approve {} always",
    "n": "/deny {}",
    "no": "/deny {}",
}


def answer_for(typed: str, question: OpenQuestion | None) -> str:
    """Return what is said for what was typed: the answer that a letter stands for while a question waits."""
    if question is None or question.tool == ASK_USER:
        return typed
    command = _COMMANDS.get(typed.strip().lower())
    return typed if command is None else command.format(question.id)


def offer(question: OpenQuestion | None) -> str:
    """Return the answers there are, in a line."""
    if question is None:
        return "Waiting for a word that is not yours to give"
    if question.tool == ASK_USER:
        return "Waiting for your answer"
    if question.covers is None:
        return "Waiting for your word: y once, n no"
    what = cut(describe_coverage(question.tool, question.covers), COVERAGE_CHARACTERS)
    return f"Waiting for your word: y once, s in this conversation, a always ({what}), n no"


def ask(question: OpenQuestion, *, zone: str) -> str:
    """Return a question that was put before, or elsewhere, as it is shown here."""
    until = told_time(question.expires_at, zone=zone)
    whom = "your answer" if question.tool == ASK_USER else "/approve or /deny"
    return f"{question.text}\n(Question {question.id} waits until {until} for {whom}.)"
