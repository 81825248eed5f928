"""A stage that notes what is said and done on it, a brief to answer, and an agent on a scripted provider."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from keryx.agents.agent import Brief, HistoryItem, ModelUse, StepDone
from keryx.agents.model.agent import ModelAgent
from keryx.agents.model.choice import ModelChoice
from keryx.agents.model.contract import Access
from keryx.agents.model.guide import Guide
from keryx.clock import SECOND
from keryx.core.context.rules.cover import Cover, Summary
from keryx.core.context.rules.prompt import ContextFacts
from keryx.core.conversations.rules.message import (
    Message,
    NewMessage,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    encode_parts,
)
from keryx.core.conversations.rules.part import Part
from keryx.core.conversations.rules.session_settings import ModelSettings
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.values.turn_states import TurnId, TurnPurpose
from keryx.testing.clock import FakeClock
from keryx.testing.model_server import ModelServer

Shape = Literal["openai", "anthropic"]
MODELS: Mapping[Shape, str] = {"openai": "openai:scripted", "anthropic": "anthropic:claude-scripted"}
LOOK = ToolOffer(
    name="look",
    description="Look at something.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}},
    effect="pure",
)


@dataclass
class Noted:
    """A stage on which every call has the result "seen", and ``joined`` is said after the first step."""

    joined: tuple[NewMessage, ...] = ()
    said: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    pauses: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    steps: list[NewMessage] = field(default_factory=list)
    asked: list[ModelUse] = field(default_factory=list)
    told: list[HistoryItem] = field(default_factory=list)
    covers: list[Summary] = field(default_factory=list)
    refuses: bool = False
    pins: frozenset[int] = frozenset()

    async def say(self, text: str) -> None:
        self.said.append(text)

    async def think(self, text: str) -> None:
        self.thought.append(text)

    async def pause(self, reason: str) -> None:
        self.pauses.append(reason)

    async def show_call(self, text: str) -> None:
        self.used.append(text)

    async def note_model(self, asked: ModelUse) -> None:
        self.asked.append(asked)

    async def act(self, step: NewMessage) -> StepDone:
        joined = () if self.steps else self.joined
        self.steps.append(step)
        calls = [part for part in step.parts if isinstance(part, ToolCallPart)]
        results = tuple(ToolResultPart(call_id=call.call_id, name=call.name, output="seen") for call in calls)
        return StepDone(results=results, joined=joined)

    async def reread(self) -> Sequence[HistoryItem]:
        """What the brief said, and the steps since, as if they had been stored."""
        return self.told

    async def pinned(self) -> frozenset[int]:
        return self.pins

    async def cover(self, summary: Summary) -> bool:
        if self.refuses:
            return False
        cover = Cover(
            session_id="s",
            no=len(self.covers) + 1,
            branch_no=0,
            first_seq=summary.first_seq,
            last_seq=summary.last_seq,
            summary=summary.text,
            tokens_before=summary.tokens_before,
            tokens_after=summary.tokens_after,
            created_at=1,
        )
        self.covers.append(summary)
        covered = [
            place
            for place, each in enumerate(self.told)
            if summary.first_seq <= _seq(each) <= summary.last_seq
        ]
        self.told[covered[0] : covered[-1] + 1] = [cover]
        return True


def _seq(said: HistoryItem) -> int:
    return said.last_seq if isinstance(said, Cover) else said.seq


def message(seq: int, role: Role, *parts: Part) -> Message:
    return Message(seq, "s", 0, seq, role, encode_parts(parts), None, None, None, 0, 0, 0, 0, 0, None, 0)


def brief(
    *messages: Message | Cover,
    purpose: TurnPurpose = "reply",
    tools: Sequence[ToolOffer] = (LOOK,),
    source: Source = LOCAL_CLI,
    model: str | None = None,
    model_settings: ModelSettings | None = None,
    focus: str | None = None,
) -> Brief:
    return Brief(
        turn_id=TurnId(1),
        session_id="s",
        purpose=purpose,
        context=ContextFacts(source=source, session_id="s", started_at=0),
        messages=messages or (message(1, "user", TextPart(text="What is there?")),),
        tools=tools,
        role="owner",
        model=model,
        model_settings=model_settings,
        focus=focus,
    )


def agent_of(
    server: ModelServer,
    shape: Shape = "openai",
    *,
    choice: ModelChoice | None = None,
    clock: FakeClock | None = None,
    timeout_seconds: float = 20.0,
    answer_seconds: float = 1_800.0,
    key: str = "k",
    sleeps: Callable[[float], None] = lambda _: None,
) -> ModelAgent:
    """Return an agent whose pauses are the clock's."""
    clock = clock or FakeClock()

    async def sleep(seconds: float) -> None:
        sleeps(seconds)
        clock.advance(round(seconds * SECOND))

    variables = {
        "OPENAI_API_KEY": key,
        "OPENAI_BASE_URL": server.openai_url,
        "ANTHROPIC_API_KEY": key,
        "ANTHROPIC_BASE_URL": server.url,
    }
    return ModelAgent(
        choice or ModelChoice(model=MODELS[shape]),
        Access(variables=variables, timeout_seconds=timeout_seconds, answer_seconds=answer_seconds),
        otherwise=Guide(),
        clock=clock,
        sleep=sleep,
    )
