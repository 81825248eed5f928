"""The agent of a simulation and its tools: what they do is said by the messages themselves, and kept in books.

A message bears a number (``#12``) and words that say what happens on the way to its answer. An answer quotes the number
of every message it answers, so that whoever reads the platform's books can tell what was answered, where and how often.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field

from keryx.agents.agent import AgentFailed, Answer, Brief, Said, Stage, ToolOffer
from keryx.clock import SECOND
from keryx.domain.cover import Cover, Summary
from keryx.domain.json_value import JsonValue
from keryx.domain.message import Message, NewMessage, TextPart, ToolCallPart, text_of
from keryx.domain.turn import StepEffect
from keryx.tools.tool import Tool, Use
from keryx.values import dataclass

Place = Callable[[str], Awaitable[None]]
"""Called with a word for it wherever the process may die."""

ANSWER = "Answer to"
LONG = "\n\n".join(f"And this is paragraph {number} of it." for number in range(6))
WORDS = ("slow", "tools", "long", "fails", "flaky", "broken", "hangs", "breaks", "asks")
SUM_UP = "again"
BEFORE_SUMMARY = "before a summary"
TOOLS: dict[str, StepEffect] = {"pay": "once", "look": "pure", "note": "idempotent"}
ASKED = "sign"
"""A tool that a person must allow each time."""
EFFECTS: dict[str, StepEffect] = {**TOOLS, ASKED: "ask"}
QUESTION = f"May I {ASKED}"
_CALLING: dict[str, Sequence[str]] = {"tools": tuple(TOOLS), "asks": (ASKED,), "broken": ()}
_NUMBER = re.compile(r"#(\d+)")


def numbers_in(text: str) -> list[int]:
    """Return the numbers of the messages that a text names."""
    return [int(number) for number in _NUMBER.findall(text)]


@dataclass(slots=True)
class Effects:
    """What tools did to the world, whatever any gateway knows of it."""

    started: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often a tool began to work for a message."""
    keys: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    """Under which keys it did."""
    allowed: dict[int, set[int]] = field(default_factory=dict)
    """By message, the questions about it to which somebody said yes."""
    allowed_vaguely: int = 0
    """How often somebody said yes without saying to what."""
    _vague: Counter[int] = field(default_factory=Counter)
    """The messages for which such a yes was taken."""
    not_allowed: list[int] = field(default_factory=list)
    """The messages for which was done what nobody had allowed."""
    silent: int = 0
    """How often it was asked for something that is no answer."""
    summaries: int = 0
    """How often a summary took the place of what came before."""
    tried: Counter[int] = field(default_factory=Counter)
    """How often the agent was asked about a message."""

    def begin(self, name: str, number: int, *, key: str) -> None:
        """Note that a tool begins to work; what must be asked about may begin once for every yes."""
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


class ScriptedTool:
    """A tool that notes what it does."""

    def __init__(self, name: str, effect: StepEffect, effects: Effects, place: Place) -> None:
        self._offer = ToolOffer(name=name, description=f"{name} something", parameters={}, effect=effect)
        self._effects = effects
        self._place = place

    @property
    def offer(self) -> ToolOffer:
        """What the agent is told of it."""
        return self._offer

    async def run(self, use: Use) -> JsonValue:
        """Do it."""
        name, number = self._offer.name, use.arguments["number"]
        assert isinstance(number, int), "the script names its messages"
        await self._place(f"before {name}")
        self._effects.begin(name, number, key=use.key)
        await self._place(f"after {name}")
        return f"{name} is done"

    def question(self, use: Use) -> str:
        """Return what is asked, in words that bear the message's number."""
        return f"May I {self._offer.name} for #{use.arguments['number']}?"

    def pattern(self, use: Use) -> str | None:  # noqa: ARG002 - the same whatever it is used for
        """Return None: a lasting yes would cover every use."""
        return None


class ScriptedAgent:
    """Does what the messages say."""

    def __init__(self, effects: Effects, place: Place) -> None:
        self._effects = effects
        self._place = place

    def tools(self) -> Sequence[Tool]:
        """Return the tools it calls."""
        return [ScriptedTool(name, effect, self._effects, self._place) for name, effect in EFFECTS.items()]

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        """Answer everything in the conversation that no answer names yet."""
        await self._place("before the agent")
        if brief.purpose != "reply":
            self._effects.silent += 1
            await self._place(f"in a {brief.purpose}")
            return Answer(message=None, silent=True)
        asked = _unanswered(brief.messages)
        words = {word for text in asked.values() for word in text.split() if word in (*WORDS, SUM_UP)}
        self._effects.tried.update(list(asked))
        if "slow" in words:
            await self._speak(stage, sorted(asked))
        if "hangs" in words:
            await asyncio.sleep(45)
        if SUM_UP in words:
            await self._sum_up(stage)
        if words & set(_CALLING):
            names = [name for word, named in _CALLING.items() if word in words for name in named]
            asked |= await self._act(brief, stage, asked, names=names, broken="broken" in words)
        self._fail(words, asked)
        text = f"{ANSWER} {' '.join(f'#{number}' for number in sorted(asked))}"
        await self._place("before the answer")
        return Answer(
            message=NewMessage(
                role="assistant",
                parts=(TextPart(text=f"{text}\n\n{LONG}" if "long" in words else text),),
                finish_reason="stop",
            )
        )

    async def close(self) -> None:
        """It holds nothing."""

    async def _speak(self, stage: Stage, asked: Sequence[int]) -> None:
        """Say something over some seconds."""
        await stage.say(f"{ANSWER} {' '.join(f'#{number}' for number in asked)}")
        for _ in range(5):
            await asyncio.sleep(0.5)
            await stage.say(", word after word")
        await self._place("while speaking")

    async def _sum_up(self, stage: Stage) -> None:
        """Let a summary stand for everything up to the last answer."""
        said = await stage.reread()
        before = [each for each in said if isinstance(each, Message)]
        while before and before[-1].role != "assistant":
            before.pop()
        await self._place(BEFORE_SUMMARY)
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
        await self._place("after a summary")

    async def _act(
        self, brief: Brief, stage: Stage, asked: dict[int, str], *, names: Sequence[str], broken: bool
    ) -> dict[int, str]:
        """Make every call that was not made before; return the messages that joined meanwhile."""
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
        # Odd ones only, so that it may be told to try again and succeeds.
        if "fails" in words and any(self._effects.tried[number] % 2 for number in asked):
            raise AgentFailed("the model said no")
        if "flaky" in words and first:
            raise AgentFailed("the model is busy", retry_after=2 * SECOND)
        if "breaks" in words and first:
            raise RuntimeError("a fault in the agent")


def _unanswered(messages: Sequence[Said]) -> dict[int, str]:
    """Return what people said that no answer names, by number."""
    people = _by_number([each for each in messages if isinstance(each, Message) and each.role == "user"])
    for each in messages:
        if isinstance(each, Message) and each.role == "assistant":
            for number in numbers_in(text_of(each.parts)):
                people.pop(number, None)
    return people


def _by_number(messages: Sequence[Message | NewMessage]) -> dict[int, str]:
    texts = [text_of(each.parts) for each in messages]
    return {number: text for text in texts for number in numbers_in(text)[:1]}


def _calls(messages: Sequence[Said]) -> list[tuple[str, int]]:
    """Return the calls that the conversation shows, by tool and message."""
    made: list[tuple[str, int]] = []
    for each in messages:
        for part in each.parts if isinstance(each, Message) else ():
            if isinstance(part, ToolCallPart) and isinstance(part.arguments, dict):
                number = part.arguments.get("number")
                if isinstance(number, int):
                    made.append((part.name, number))
    return made
