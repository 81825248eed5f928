"""Questions at a terminal: a letter answers an approval, and any text answers a question of the agent itself.

A letter is replaced by the command with the question's number, so that it answers only the question that was shown.
"""

from typing import Final

from keryx.core.approvals.rules.approval import ASK_USER, ApprovalQuestion, format_time
from keryx.core.turns.views.terminal import OpenQuestion

_COMMANDS: Final = {
    "y": "/approve {}",
    "yes": "/approve {}",
    "s": "/approve {} session",
    "a": "/approve {} always",
    "n": "/deny {}",
    "no": "/deny {}",
}


def answer_for(typed: str, question: OpenQuestion | None) -> str:
    """Return the command for a typed letter while an approval waits, or else the typed text."""
    if question is None or question.tool == ASK_USER:
        return typed
    command = _COMMANDS.get(typed.strip().lower())
    return typed if command is None else command.format(question.id)


def offer(question: OpenQuestion | None, *, queued: int = 0) -> str:
    """Return the possible answers in a line of at most 80 characters. Queued messages wait for the answer."""
    if question is None:
        return "Waiting for another person's answer"
    if question.tool == ASK_USER:
        return "Waiting for your answer"
    lasting = "" if question.covers is None else " s in this conversation, a always,"
    return f"{'Answer first' if queued else 'Waiting for your approval'}: y once,{lasting} n no"


def ask_again(question: OpenQuestion, *, zone: str) -> str:
    """Return a question that was asked earlier or elsewhere, with its possible answers."""
    if question.tool == ASK_USER:
        return ask(question, zone=zone)
    put = ApprovalQuestion(text=question.text, tool=question.tool, covers=question.covers, zone=zone)
    return put.with_answers(question.id, expires_at=question.expires_at)


def ask(question: OpenQuestion, *, zone: str) -> str:
    """Return a question, and the time until which it can be answered."""
    until = format_time(question.expires_at, zone=zone)
    whom = "your answer" if question.tool == ASK_USER else "/approve or /deny"
    return f"{question.text}\n(Question {question.id} waits until {until} for {whom}.)"
