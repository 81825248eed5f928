"""The agent under torture: answers what it is asked, in words and with tools, at the pace it is told.

It makes a call only if the transcript does not hold it already, as a model would after a crash.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Final, Literal

from keryx.agents.agent import Answer, Brief, Said, Stage, ToolOffer
from keryx.domain.json_value import JsonValue
from keryx.domain.message import Message, NewMessage, TextPart, ToolCallPart, text_of
from keryx.testing.torture.effects import EffectBook
from keryx.testing.torture.words import Question, make_answer, read_question
from keryx.tools.tool import Use

WORD_SECONDS: Final = 0.02
SLOW_SECONDS: Final = 1.1
TOOL_SECONDS: Final = 0.05
_WORDS_SPOKEN: Final = 8


class NoteTool:
    """A tool whose only effect is a line in the book."""

    def __init__(self, book: EffectBook, effect: Literal["once", "pure"]) -> None:
        self._book = book
        self._effect = effect

    @property
    def offer(self) -> ToolOffer:
        """What the agent is told of it."""
        parameters: dict[str, JsonValue] = {"type": "object", "properties": {"token": {"type": "string"}}}
        return ToolOffer(
            name=self._effect, description="Notes a token.", parameters=parameters, effect=self._effect
        )

    async def run(self, use: Use) -> JsonValue:
        """Note it, with a moment before and after in which a process can be killed."""
        await asyncio.sleep(TOOL_SECONDS)
        self._book.note(self._effect, turn_id=0, token=use.text("token"), key=use.key)
        await asyncio.sleep(TOOL_SECONDS)
        return "noted"

    def question(self, use: Use) -> str:
        """Nobody is asked."""
        return f"May I note {use.text('token')}?"

    def pattern(self, use: Use) -> str | None:  # noqa: ARG002 - the same whatever it is used for
        """Return None: nobody is asked."""
        return None


class TortureAgent:
    """Answers whatever questions are open, all at once."""

    def __init__(self, book: EffectBook) -> None:
        self._book = book

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        """Make the calls that are wished for, speak, and quote what was asked."""
        questions, made = read_open(brief.messages)
        if not questions:
            return _said("There is nothing to answer here.")
        self._book.note("begin", turn_id=brief.turn_id, token=questions[-1].token)
        calls = [call for call in _wished_calls(questions) if call.call_id not in made]
        if calls:
            await stage.say("I note it. ")
            done = await stage.act(NewMessage(role="assistant", parts=(TextPart(text="I note it."), *calls)))
            joined = (read_question(text_of(message.parts)) for message in done.joined)
            questions += [question for question in joined if question is not None]
        text = make_answer(questions)
        await self._speak(stage, text, slow=any("slow" in each.wishes for each in questions))
        self._book.note("end", turn_id=brief.turn_id, token=questions[-1].token)
        return _said(text)

    async def close(self) -> None:
        """It holds nothing."""

    async def _speak(self, stage: Stage, text: str, *, slow: bool) -> None:
        words = re.findall(r"\S+\s*", text)
        pause = SLOW_SECONDS / _WORDS_SPOKEN if slow else WORD_SECONDS
        for word in words[:_WORDS_SPOKEN]:
            await stage.say(word)
            await asyncio.sleep(pause)
        await stage.say("".join(words[_WORDS_SPOKEN:]))


def read_open(messages: Sequence[Said]) -> tuple[list[Question], set[str]]:
    """Return the questions asked since the last answer, in order, and the ids of all calls made in the transcript."""
    questions: list[Question] = []
    made: set[str] = set()
    for message in messages:
        if not isinstance(message, Message):
            continue
        made |= {call.call_id for call in message.tool_calls}
        if message.role == "assistant" and not message.tool_calls:
            questions = []
        elif message.role == "user":
            question = read_question(message.text)
            if question is not None:
                questions.append(question)
    return questions, made


def _wished_calls(questions: list[Question]) -> list[ToolCallPart]:
    return [
        ToolCallPart(call_id=f"{name}-{each.token}", name=name, arguments={"token": each.token})
        for each in questions
        for name in ("once", "pure")
        if name in each.wishes
    ]


def _said(text: str) -> Answer:
    return Answer(message=NewMessage(role="assistant", parts=(TextPart(text=text),), finish_reason="stop"))
