"""An agent of the OpenAI Agents SDK remembers through Keryx."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.items import TResponseInputItem
from agents.memory import Session, SessionSettings
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import keryx
from keryx.core.conversations.rules.message import ThinkingPart
from keryx.errors import NotFound
from keryx.ids import Ids
from keryx.integrations.openai_agents import KeryxSession
from keryx.library.client import Keryx
from keryx.testing.clock import FakeClock

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kx(store_address: str, clock: FakeClock, ids: Ids) -> AsyncIterator[Keryx]:
    async with keryx.open(store_address, clock=clock, ids=ids) as opened:
        yield opened


def user(text: str) -> TResponseInputItem:
    return {"role": "user", "content": text}


class Scripted(Model):
    """A model that says what it is told to, and keeps what it was asked."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)
        self.asked: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002, ARG002
        self.asked.append(input)
        return ModelResponse(output=[self.outputs.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def says(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id="m", role="assistant", status="completed", type="message", content=[content]
    )


@function_tool
def look_up(place: str) -> str:
    """Find a place."""
    return f"{place} is in Rome"


async def test_a_real_agent_continues_its_session(kx: Keryx) -> None:
    call = ResponseFunctionToolCall(
        call_id="c1", name="look_up", arguments='{"place": "hotel"}', type="function_call", id="f"
    )
    model = Scripted(call, says("It is in Rome."), says("As I said: Rome."))
    agent = Agent(name="guide", model=model, tools=[look_up])
    config = RunConfig(tracing_disabled=True)
    first = await Runner.run(agent, "Where is the hotel?", session=KeryxSession("ana", kx), run_config=config)
    again = await Runner.run(agent, "Where?", session=KeryxSession("ana", kx), run_config=config)

    assert (first.final_output, again.final_output) == ("It is in Rome.", "As I said: Rome.")
    kinds = [item.get("type", item.get("role")) for item in model.asked[-1]]
    assert kinds == ["user", "function_call", "function_call_output", "message", "user"]
    [session] = (await kx.list_sessions()).rows
    assert (session.platform, session.message_count, session.tool_call_count) == ("openai-agents", 6, 1)
    found = await kx.search("hotel is in rome")
    assert [hits.session_id for hits in found.sessions] == [session.id]


async def test_it_is_a_session_of_the_sdk(kx: Keryx) -> None:
    assert isinstance(KeryxSession("ana", kx), Session)


async def test_items_come_back_as_they_were_added(kx: Keryx) -> None:
    session = KeryxSession("ana", kx)
    items: list[Any] = [user("a"), {"type": "reasoning", "id": "r", "summary": []}, user("b")]
    assert await session.get_items() == []
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(limit=2) == items[1:]
    assert await session.get_items(limit=0) == []
    limited = KeryxSession("ana", kx, session_settings=SessionSettings(limit=1))
    assert await limited.get_items() == items[2:]
    assert await limited.get_items(limit=3) == items


async def test_other_ids_are_other_sessions(kx: Keryx) -> None:
    await KeryxSession("ana", kx).add_items([user("a")])
    assert await KeryxSession("ben", kx).get_items() == []


async def test_an_existing_conversation_can_be_continued(kx: Keryx) -> None:
    session = await kx.create_session()
    await kx.append(session.id, role="user", text="Where were we?")
    assert await KeryxSession(session.id, kx).get_items() == [user("Where were we?")]
    with pytest.raises(NotFound):
        await KeryxSession("20260101_000000_00000000", kx).get_items()


async def test_a_popped_item_comes_back_by_redo(kx: Keryx) -> None:
    session = KeryxSession("ana", kx)
    await session.add_items([user("a"), user("b"), user("c")])
    assert await session.pop_item() == user("c")
    assert await session.pop_item() == user("b")
    assert await session.get_items() == [user("a")]
    await session.add_items([user("B")])
    assert await session.get_items() == [user("a"), user("B")]
    assert [await session.pop_item() for _ in range(3)] == [user("B"), user("a"), None]
    [row] = (await kx.list_sessions()).rows
    assert (row.message_count, row.message_total) == (0, 4)


async def test_a_cleared_session_is_empty_and_loses_nothing(kx: Keryx) -> None:
    session = KeryxSession("ana", kx)
    await session.clear_session()
    await session.add_items([user("a"), user("b")])
    await session.clear_session()
    assert await session.get_items() == []
    await session.add_items([user("c")])
    assert await session.get_items() == [user("c")]
    [row] = (await kx.list_sessions()).rows
    await kx.switch_branch(row.id, 0)
    assert await session.get_items() == [user("a"), user("b")]


async def test_items_are_added_all_or_none(kx: Keryx) -> None:
    session = KeryxSession("ana", kx)
    items: list[Any] = [user("a"), {"role": "user", "content": object()}]
    with pytest.raises(ValueError, match="JSON object"):
        await session.add_items(items)
    assert await session.get_items() == []


async def test_pop_skips_a_message_without_items(kx: Keryx) -> None:
    session = await kx.create_session()
    await kx.append(session.id, role="user", text="a")
    await kx.append(session.id, role="assistant", parts=[ThinkingPart(text="hm")])
    assert await KeryxSession(session.id, kx).pop_item() == user("a")
