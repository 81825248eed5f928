"""The agent of a simulation and its tools: the messages say what they do, and ``Effects`` records it.

A message has a number (``#12``) and words that say what happens on the way to its answer. An answer quotes the number
of every message it answers, so that the platform's records show what was answered, where and how often.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field

from keryx.agents.agent import Answer, Brief, HistoryItem, Stage
from keryx.clock import SECOND
from keryx.core.context.rules.cover import Cover, Summary
from keryx.core.conversations.rules.message import Message, NewMessage, TextPart, ToolCallPart, text_of
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import AgentFailed
from keryx.tools.tool import Tool, ToolCall
from keryx.values import dataclass

Checkpoint = Callable[[str], Awaitable[None]]
"""Called wherever the process may die, with the name of the point."""

ANSWER = "Answer to"
LONG = "\n\n".join(f"And this is paragraph {number} of it." for number in range(6))
WORDS = ("slow", "tools", "long", "fails", "flaky", "broken", "hangs", "breaks", "asks")
SUM_UP = "again"
BEFORE_SUMMARY = "before a summary"
TOOLS: dict[str, StepEffect] = {"pay": "once", "look": "pure", "note": "idempotent"}
ASKED = "sign"
"""A tool that needs approval each time."""
EFFECTS: dict[str, StepEffect] = {**TOOLS, ASKED: "ask"}
QUESTION = f"May I {ASKED}"
_CALLING: dict[str, Sequence[str]] = {"tools": tuple(TOOLS), "asks": (ASKED,), "broken": ()}
_NUMBER = re.compile(r"#(\d+)")


def numbers_in(text: str) -> list[int]:
    """Return the message numbers in a text."""
    return [int(number) for number in _NUMBER.findall(text)]


@dataclass(slots=True)
class Effects:
    """A record of what the tools did, independent of what a gateway knows."""

    started: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often a tool started for a message."""
    keys: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    """The keys of these starts."""
    allowed: dict[int, set[int]] = field(default_factory=dict)
    """By message, the approved questions about it."""
    allowed_vaguely: int = 0
    """How many approvals named no question."""
    _vague: Counter[int] = field(default_factory=Counter)
    """The messages that used up such an approval."""
    not_allowed: list[int] = field(default_factory=list)
    """The messages for which a call ran without approval."""
    silent: int = 0
    """How many turns had a purpose other than a reply."""
    summaries: int = 0
    """How many summaries were stored."""
    tried: Counter[int] = field(default_factory=Counter)
    """How often the agent tried to answer a message."""

    def begin(self, name: str, number: int, *, key: str) -> None:
        """Record the start of a tool; a tool that needs approval may start once for each approval."""
        self.started[name, number] += 1
        self.keys.setdefault((name, number), set()).add(key)
        if (
            name != ASKED
            or self.started[name, number] <= len(self.allowed.get(number, ())) + self._vague[number]
        ):
            return
        if self._vague.total() < self.allowed_vaguely:
            self._vague[number] += 1
        else:
            self.not_allowed.append(number)


class ScriptedTool(Tool):
    """A tool that records its runs."""

    def __init__(self, name: str, effect: StepEffect, effects: Effects, checkpoint: Checkpoint) -> None:
        self.offer = ToolOffer(name=name, description=f"{name} something", parameters={}, effect=effect)
        self._effects = effects
        self._checkpoint = checkpoint

    async def run(self, call: ToolCall) -> JsonValue:
        """Record a run; the process may die before and after."""
        name, number = self.offer.name, call.arguments["number"]
        assert isinstance(number, int), "the script names its messages"
        await self._checkpoint(f"before {name}")
        self._effects.begin(name, number, key=call.key)
        await self._checkpoint(f"after {name}")
        return f"{name} is done"

    def question(self, call: ToolCall) -> str:
        """Return the question, which contains the message's number."""
        return f"May I {self.offer.name} for #{call.arguments['number']}?"


class ScriptedAgent:
    """An agent that does what the messages say."""

    def __init__(self, effects: Effects, checkpoint: Checkpoint) -> None:
        self._effects = effects
        self._checkpoint = checkpoint

    def tools(self) -> Sequence[Tool]:
        """Return the tools that the agent calls."""
        return [
            ScriptedTool(name, effect, self._effects, self._checkpoint) for name, effect in EFFECTS.items()
        ]

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        """Answer all messages that no answer quotes yet."""
        await self._checkpoint("before the agent")
        if brief.purpose != "reply":
            self._effects.silent += 1
            await self._checkpoint(f"in a {brief.purpose}")
            return Answer(message=None, silent=True)
        asked = _unanswered(brief.messages)
        words = {word for text in asked.values() for word in text.split() if word in (*WORDS, SUM_UP)}
        self._effects.tried.update(list(asked))
        if "slow" in words:
            await self._speak(stage, sorted(asked))
        if "hangs" in words:
            await asyncio.sleep(45)
        if SUM_UP in words:
            await self._summarise(stage)
        if words & set(_CALLING):
            names = [name for word, named in _CALLING.items() if word in words for name in named]
            asked |= await self._act(brief, stage, asked, names=names, broken="broken" in words)
        self._fail(words, asked)
        text = f"{ANSWER} {' '.join(f'#{number}' for number in sorted(asked))}"
        await self._checkpoint("before the answer")
        return Answer(
            message=NewMessage(
                role="assistant",
                parts=(TextPart(text=f"{text}\n\n{LONG}" if "long" in words else text),),
                finish_reason="stop",
            )
        )

    async def close(self) -> None:
        """Do nothing: the agent holds no resources."""

    async def _speak(self, stage: Stage, asked: Sequence[int]) -> None:
        """Stream text for some seconds."""
        await stage.say(f"{ANSWER} {' '.join(f'#{number}' for number in asked)}")
        for _ in range(5):
            await asyncio.sleep(0.5)
            await stage.say(", word after word")
        await self._checkpoint("while speaking")

    async def _summarise(self, stage: Stage) -> None:
        """Cover all messages up to the last answer with a summary."""
        said = await stage.reread()
        before = [each for each in said if isinstance(each, Message)]
        while before and before[-1].role != "assistant":
            before.pop()
        await self._checkpoint(BEFORE_SUMMARY)
        if before and not any(isinstance(each, Cover) for each in said):
            self._effects.summaries += await stage.cover(
                Summary(
                    first_seq=before[0].seq,
                    last_seq=before[-1].seq,
                    text="What was said before",
                    tokens_before=100,
                    tokens_after=10,
                )
            )
        await self._checkpoint("after a summary")

    async def _act(
        self, brief: Brief, stage: Stage, asked: dict[int, str], *, names: Sequence[str], broken: bool
    ) -> dict[int, str]:
        """Make all calls that were not made before; return the messages that joined meanwhile."""
        made = _calls(brief.messages)
        calls = [
            ToolCallPart(
                call_id=f"{name}-{brief.turn_id}-{number}",
                name=name,
                arguments="{" if broken else {"number": number},
            )
            for number in sorted(asked)
            for name in (("look",) if broken else names)
            if (name, number) not in made
        ]
        if not calls:
            return {}
        done = await stage.act(NewMessage(role="assistant", parts=tuple(calls)))
        return _by_number(done.joined)

    def _fail(self, words: set[str], asked: dict[int, str]) -> None:
        first = all(self._effects.tried[number] == 1 for number in asked)
        # Fail at odd tries only, so that a retry succeeds.
        if "fails" in words and any(self._effects.tried[number] % 2 for number in asked):
            raise AgentFailed("the model said no")
        if "flaky" in words and first:
            raise AgentFailed("the model is busy", retry_after=2 * SECOND)
        if "breaks" in words and first:
            raise RuntimeError("a fault in the agent")


def _unanswered(messages: Sequence[HistoryItem]) -> dict[int, str]:
    """Return the people's messages that no answer quotes, by number."""
    people = _by_number([each for each in messages if isinstance(each, Message) and each.role == "user"])
    for each in messages:
        if isinstance(each, Message) and each.role == "assistant":
            for number in numbers_in(text_of(each.parts)):
                people.pop(number, None)
    return people


def _by_number(messages: Sequence[Message | NewMessage]) -> dict[int, str]:
    texts = [text_of(each.parts) for each in messages]
    return {number: text for text in texts for number in numbers_in(text)[:1]}


def _calls(messages: Sequence[HistoryItem]) -> list[tuple[str, int]]:
    """Return the calls in the transcript, by tool and message."""
    made: list[tuple[str, int]] = []
    for each in messages:
        for part in each.parts if isinstance(each, Message) else ():
            if isinstance(part, ToolCallPart) and isinstance(part.arguments, dict):
                number = part.arguments.get("number")
                if isinstance(number, int):
                    made.append((part.name, number))
    return made
