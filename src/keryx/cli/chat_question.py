"""A question of the agent at a terminal: one letter answers it, or, where the agent asks in its own words, any words.

The letter stands for the command with the question's number, so it never answers another question than the one seen.
"""

from typing import Final

from keryx.domain.approval import ASK_USER, Question, told_time
from keryx.views.said import OpenQuestion

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


def offer(question: OpenQuestion | None, *, queued: int = 0) -> str:
    """Return the answers there are, in a line of at most 80 characters; they come before messages that are queued."""
    if question is None:
        return "Waiting for a word that is not yours to give"
    if question.tool == ASK_USER:
        return "Waiting for your answer"
    lasting = "" if question.covers is None else " s in this conversation, a always,"
    return f"{'Answer first' if queued else 'Waiting for your word'}: y once,{lasting} n no"


def ask_again(question: OpenQuestion, *, zone: str) -> str:
    """Return a question that was put before, or elsewhere, with the answers it can be given."""
    if question.tool == ASK_USER:
        return ask(question, zone=zone)
    put = Question(text=question.text, tool=question.tool, covers=question.covers, zone=zone)
    return put.told(question.id, expires_at=question.expires_at)


def ask(question: OpenQuestion, *, zone: str) -> str:
    """Return a question, and until when it can be answered."""
    until = told_time(question.expires_at, zone=zone)
    whom = "your answer" if question.tool == ASK_USER else "/approve or /deny"
    return f"{question.text}\n(Question {question.id} waits until {until} for {whom}.)"
