"""The agent of a torture run: answers questions with text and tool calls, at the requested pace.

It makes a call only if the transcript does not contain the call yet, as a model does after a crash.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Final, Literal

from keryx.agents.agent import Answer, Brief, HistoryItem, Stage
from keryx.core.conversations.rules.message import Message, NewMessage, TextPart, ToolCallPart, text_of
from keryx.core.values.json_value import JsonValue
from keryx.testing.torture.effects import EffectLog
from keryx.testing.torture.texts import Question, make_answer, read_question
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import ToolCall

WORD_SECONDS: Final = 0.02
SLOW_SECONDS: Final = 1.1
TOOL_SECONDS: Final = 0.05
_WORDS_SPOKEN: Final = 8


class NoteTool(BaseTool):
    """A tool whose only effect is a line in the log."""

    description = "Notes a token."
    parameters = {"token": Parameter(required=True)}  # noqa: RUF012 - never changed

    def __init__(self, effect_log: EffectLog, effect: Literal["once", "pure"]) -> None:
        self._effect_log = effect_log
        self._effect = effect
        self.name = self.effect = effect

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Note the token, with a moment before and after in which a process can be killed."""
        await asyncio.sleep(TOOL_SECONDS)
        self._effect_log.note(self._effect, turn_id=0, token=given.text("token"), key=call.key)
        await asyncio.sleep(TOOL_SECONDS)
        return "noted"


class TortureAgent:
    """Answers all open questions at once."""

    def __init__(self, effect_log: EffectLog) -> None:
        self._effect_log = effect_log

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        """Make the wished calls, stream text, and return an answer that quotes the questions."""
        questions, made = read_open(brief.messages)
        if not questions:
            return _said("There is nothing to answer here.")
        self._effect_log.note("begin", turn_id=brief.turn_id, token=questions[-1].token)
        calls = [call for call in _calls_for(questions) if call.call_id not in made]
        if calls:
            await stage.say("I note it. ")
            done = await stage.act(NewMessage(role="assistant", parts=(TextPart(text="I note it."), *calls)))
            joined = (read_question(text_of(message.parts)) for message in done.joined)
            questions += [question for question in joined if question is not None]
        text = make_answer(questions)
        await self._speak(stage, text, slow=any("slow" in each.traits for each in questions))
        self._effect_log.note("end", turn_id=brief.turn_id, token=questions[-1].token)
        return _said(text)

    async def close(self) -> None:
        """Do nothing: the agent holds no resources."""

    async def _speak(self, stage: Stage, text: str, *, slow: bool) -> None:
        words = re.findall(r"\S+\s*", text)
        pause = SLOW_SECONDS / _WORDS_SPOKEN if slow else WORD_SECONDS
        for word in words[:_WORDS_SPOKEN]:
            await stage.say(word)
            await asyncio.sleep(pause)
        await stage.say("".join(words[_WORDS_SPOKEN:]))


def read_open(messages: Sequence[HistoryItem]) -> tuple[list[Question], set[str]]:
    """Return the questions since the last answer, in order, and the ids of all calls in the transcript."""
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


def _calls_for(questions: list[Question]) -> list[ToolCallPart]:
    return [
        ToolCallPart(call_id=f"{name}-{each.token}", name=name, arguments={"token": each.token})
        for each in questions
        for name in ("once", "pure")
        if name in each.traits
    ]


def _said(text: str) -> Answer:
    return Answer(message=NewMessage(role="assistant", parts=(TextPart(text=text),), finish_reason="stop"))
