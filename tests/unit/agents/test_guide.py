"""The guide: honest about what it is, and calling tools as a model would."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from keryx.agents.agent import Brief, HistoryItem, ModelUse, StepDone
from keryx.agents.model.guide import ABILITIES, SETUP, Guide
from keryx.agents.model.setup_hints import SetupHints
from keryx.core.context.rules.cover import Cover, Summary
from keryx.core.context.rules.guide_turns import GREETING, GUIDE
from keryx.core.context.rules.prompt import ContextFacts
from keryx.core.conversations.rules.message import (
    Message,
    NewMessage,
    Role,
    ToolCallPart,
    ToolResultPart,
    encode_parts,
)
from keryx.core.conversations.rules.part import Part, TextPart
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.values.turn_states import TurnId, TurnPurpose

TOOLS = ("search_history", "list_sessions", "list_schedules", "list_processes", "list_platforms", "remember")


@dataclass
class Heard:
    """A stage that notes what is said and done on it, and answers every call with its name."""

    said: list[str] = field(default_factory=list)
    calls: list[ToolCallPart] = field(default_factory=list)
    steps: list[NewMessage] = field(default_factory=list)

    async def say(self, text: str) -> None:
        self.said.append(text)

    async def think(self, text: str) -> None:
        raise AssertionError(text)

    async def pause(self, reason: str) -> None:
        raise AssertionError(reason)

    async def show_call(self, text: str) -> None:
        raise NotImplementedError

    async def note_model(self, use: ModelUse) -> None:
        raise AssertionError(use)

    async def act(self, step: NewMessage) -> StepDone:
        made = [part for part in step.parts if isinstance(part, ToolCallPart)]
        self.calls += made
        self.steps.append(step)
        return StepDone(
            results=tuple(
                ToolResultPart(call_id=call.call_id, name=call.name, output=f"from {call.name}")
                for call in made
            )
        )

    async def reread(self) -> Sequence[HistoryItem]:
        raise AssertionError

    async def pinned(self) -> frozenset[int]:
        raise AssertionError

    async def cover(self, summary: Summary) -> bool:
        raise AssertionError(summary)


def message(seq: int, role: Role, *parts: Part) -> Message:
    return Message(
        seq,
        "s",
        0,
        seq,
        role,
        encode_parts(parts),
        None,
        None,
        None,
        0,
        0,
        0,
        0,
        0,
        None,
        0,
    )


def brief(
    *messages: Message | Cover, purpose: TurnPurpose = "reply", tools: tuple[str, ...] = TOOLS
) -> Brief:
    return Brief(
        turn_id=TurnId(1),
        session_id="s",
        purpose=purpose,
        context=ContextFacts(source=LOCAL_CLI, session_id="s", started_at=0),
        messages=messages,
        tools=[ToolOffer(name=name, description="", parameters={}, effect="pure") for name in tools],
        role="owner",
    )


async def answer(text: str, **how: object) -> tuple[str, Heard]:
    stage = Heard()
    asked = message(1, "user", TextPart(text=text))
    answered = await Guide().run(brief(asked, **how), stage)  # type: ignore[arg-type]
    assert answered.message is not None
    (part,) = answered.message.parts
    assert isinstance(part, TextPart)
    return part.text, stage


async def test_its_first_answer_says_how_to_set_a_model_up() -> None:
    text, stage = await answer("How are you?")
    assert text.startswith(f"{SETUP}\n\nI found no provider's key")
    assert "run `keryx offline install && keryx config set model offline` and start Keryx again" in text
    assert text.endswith(f"\n\n{ABILITIES}")
    assert "".join(stage.said) == text
    assert len(stage.said) > 10


async def test_its_later_answers_are_one_line_with_the_command() -> None:
    asked = replace(brief(message(1, "user", TextPart(text="Hm?"))), guide_explained=True)
    hints = SetupHints(command="scripts/keryx", keys=("OPENAI_API_KEY",))
    answered = await Guide(hints).run(asked, Heard())
    assert answered.message is not None
    assert answered.message.parts == (
        TextPart(
            text="No model answers here. To set a model up, run `scripts/keryx config set model openai:gpt-5` and "
            "start Keryx again."
        ),
    )


async def test_all_it_says_is_marked_as_its_own() -> None:
    stage = Heard()
    asked = brief(message(1, "user", TextPart(text="which sessions are there?")))
    answered = await Guide().run(asked, stage)
    assert answered.message is not None
    assert {each.finish_reason for each in (*stage.steps, answered.message)} == {GUIDE}


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("search for the hotel in Rome?", "search_history", {"query": "the hotel in Rome"}),
        ("What did I say about tea", "search_history", {"query": "tea"}),
        ("which sessions are there?", "list_sessions", {}),
        ("what is scheduled", "list_schedules", {}),
        ("any processes running?", "list_processes", {}),
        ("Which platforms do you know", "list_platforms", {}),
        ("Please remember that I like tea", "remember", {"note": "I like tea"}),
    ],
)
async def test_it_answers_with_the_tools_a_model_would_call(
    text: str, tool: str, arguments: dict[str, str]
) -> None:
    told, stage = await answer(text)
    assert [(call.name, call.arguments) for call in stage.calls] == [(tool, arguments)]
    assert told == f"from {tool}"


async def test_without_the_tool_the_guide_explains_itself() -> None:
    text, stage = await answer("which sessions are there?", tools=())
    assert (text.startswith(GREETING), stage.calls) == (True, [])


async def test_a_call_that_has_a_result_is_not_repeated() -> None:
    stage = Heard()
    call = ToolCallPart(call_id="c", name="list_sessions", arguments={})
    done = ToolResultPart(call_id="c", name="list_sessions", output=["two"])
    answered = await Guide().run(
        brief(
            message(1, "assistant", TextPart(text="earlier")),
            message(2, "user", TextPart(text="which sessions are there?")),
            message(3, "assistant", call),
            message(4, "tool", done),
        ),
        stage,
    )
    assert stage.calls == []
    assert answered.message is not None
    assert answered.message.parts == (TextPart(text="['two']"),)


async def test_housekeeping_turns_get_no_answer() -> None:
    answered = await Guide().run(brief(purpose="flush"), Heard())
    assert (answered.message, answered.silent) == (None, True)
    await Guide().close()
