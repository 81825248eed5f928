"""The scripted model server: answers for real clients, and its record of their requests."""

import asyncio
import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai.errors import ClientError
from google.genai.types import HttpOptions

from keryx.testing.model_server import Asked, Call, ModelServer, Refusal, Reply

WEATHER = Call(name="weather", arguments={"city": "Rome", "days": [1, 2, 3]}, call_id="c-1")
ASK: dict[str, Any] = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "stream": True}


def openai_client(server: ModelServer, key: str = "k") -> Any:
    return openai.AsyncOpenAI(base_url=server.openai_url, api_key=key, max_retries=0)


def anthropic_client(server: ModelServer, key: str = "k") -> Any:
    return anthropic.AsyncAnthropic(base_url=server.url, api_key=key, max_retries=0)


async def lines(server: ModelServer, path: str) -> list[str]:
    async with httpx2.AsyncClient() as client, client.stream("POST", server.url + path, json=ASK) as answer:
        return [line async for line in answer.aiter_lines()]


async def test_openai_s_client_reads_a_stream() -> None:
    reply = Reply(thinking="I see", text="It is warm.", calls=[WEATHER], input_tokens=7, cached_tokens=3)
    async with ModelServer([reply]) as server, openai_client(server) as client:
        chunks = [chunk async for chunk in await client.chat.completions.create(**ASK)]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    thought = [getattr(delta, "reasoning_content", None) or "" for delta in deltas]
    assert "".join(thought) == "I see"
    assert "".join(delta.content or "" for delta in deltas) == "It is warm."
    calls = [call for delta in deltas for call in delta.tool_calls or ()]
    assert (calls[0].id, calls[0].function.name) == ("c-1", "weather")
    assert json.loads("".join(call.function.arguments for call in calls)) == WEATHER.arguments
    assert chunks[-2].choices[0].finish_reason == "tool_calls"
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.prompt_tokens_details.cached_tokens) == (7, 3)


async def test_anthropic_s_client_reads_a_stream() -> None:
    reply = Reply(
        thinking="I see", text="It is warm.", calls=[WEATHER, WEATHER], input_tokens=7, cached_tokens=3
    )
    async with ModelServer([reply]) as server, anthropic_client(server) as client:
        asked = {**ASK, "max_tokens": 9}
        del asked["stream"]
        async with client.messages.stream(**asked) as stream:
            message = await stream.get_final_message()
    thought, said, *calls = message.content
    assert (thought.thinking, thought.signature, said.text) == ("I see", "signed", "It is warm.")
    assert [(call.id, call.name, call.input) for call in calls] == [("c-1", "weather", WEATHER.arguments)] * 2
    assert (message.stop_reason, message.usage.input_tokens) == ("tool_use", 4)
    assert message.usage.cache_read_input_tokens == 3


def google_client(server: ModelServer, key: str = "k") -> Any:
    return genai.Client(api_key=key, http_options=HttpOptions(base_url=server.url)).aio


async def test_google_s_client_reads_a_stream_and_a_whole_answer() -> None:
    reply = Reply(thinking="I see", text="It is warm.", calls=[WEATHER], input_tokens=7, cached_tokens=3)
    asked = {"model": "scripted", "contents": "hi"}
    async with ModelServer([reply, reply], models=["scripted"]) as server, google_client(server) as client:
        chunks = [chunk async for chunk in await client.models.generate_content_stream(**asked)]
        whole = await client.models.generate_content(**asked)
        assert [model.name async for model in await client.models.list()] == ["models/scripted"]
    for parts in ([part for chunk in chunks for part in chunk.candidates[0].content.parts], whole.parts):
        said = [part for part in parts if part.text and not part.thought]
        assert "".join(part.text for part in said) == "It is warm."
        assert "".join(part.text for part in parts if part.thought) == "I see"
        (call,) = [part.function_call for part in parts if part.function_call]
        assert (call.id, call.name, call.args) == ("c-1", "weather", WEATHER.arguments)
    for last in (chunks[-1], whole):
        assert last.candidates[0].finish_reason == "STOP"
        assert last.usage_metadata.cached_content_token_count == 3


async def test_google_s_client_reads_the_errors_for_a_wrong_key_and_model() -> None:
    asked = {"model": "scripted", "contents": "hi"}
    async with ModelServer([], key="right", models=["other"]) as server:
        for key, status in (("wrong", "UNAUTHENTICATED"), ("right", "NOT_FOUND")):
            async with google_client(server, key) as client:
                with pytest.raises(ClientError, match=status):
                    await client.models.generate_content(**asked)


async def test_an_answer_can_be_requested_without_streaming() -> None:
    reply = Reply(text="Warm.", thinking="I see", calls=[WEATHER])
    asked = {**ASK, "stream": False}
    async with ModelServer([reply, reply]) as server:
        async with openai_client(server) as client:
            whole = await client.chat.completions.create(**asked)
        async with anthropic_client(server) as other:
            message = await other.messages.create(**asked, max_tokens=9)
    (choice,) = whole.choices
    assert (choice.message.content, choice.message.tool_calls[0].function.name) == ("Warm.", "weather")
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]


async def test_requests_are_kept_and_a_script_can_be_a_function_of_them() -> None:
    def repeat(asked: Asked) -> Reply:
        return Reply(text=str(asked.messages[-1]["content"]))

    async with ModelServer(repeat) as server, openai_client(server) as client:
        asked = {**ASK, "stream": False}
        _, whole = [await client.chat.completions.create(**asked) for _ in range(2)]
    assert whole.choices[0].message.content == "hi"
    assert [asked.path for asked in server.requests] == ["/v1/chat/completions"] * 2
    assert server.requests[0].headers["authorization"] == "Bearer k"


async def test_errors_have_the_provider_s_form() -> None:
    refusals = [
        Refusal(status=429, retry_after_seconds=2.5),
        Refusal(status=400, kind="context_length_exceeded", message="too long"),
    ]
    async with ModelServer([*refusals, *refusals]) as server:
        async with openai_client(server) as client:
            with pytest.raises(openai.RateLimitError) as limited:
                await client.chat.completions.create(**ASK)
            with pytest.raises(openai.BadRequestError) as refused:
                await client.chat.completions.create(**ASK)
        assert limited.value.response.headers["retry-after"] == "2.5"
        assert refused.value.code == "context_length_exceeded"
        async with anthropic_client(server) as other:
            with pytest.raises(anthropic.RateLimitError):
                await other.messages.create(**ASK, max_tokens=9)
            with pytest.raises(anthropic.BadRequestError, match="too long"):
                await other.messages.create(**ASK, max_tokens=9)


async def test_only_the_right_key_and_known_models_are_answered() -> None:
    async with ModelServer([Reply(text="yes")], key="right", models=["other"]) as server:
        async with openai_client(server, "wrong") as client:
            with pytest.raises(openai.AuthenticationError):
                await client.chat.completions.create(**ASK)
        async with anthropic_client(server, "right") as other:
            with pytest.raises(anthropic.NotFoundError):
                await other.messages.create(**ASK, max_tokens=9)
            assert [model.id async for model in other.models.list()] == ["other"]
            answer = await other.messages.create(**{**ASK, "model": "other", "stream": False}, max_tokens=9)
    assert answer.content[0].text == "yes"
    assert len(server.requests) == 1, "a refused request is not recorded"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_a_connection_is_cut_after_the_given_number_of_pieces(path: str) -> None:
    heard: list[str] = []

    async def listen(server: ModelServer) -> None:
        async with (
            httpx2.AsyncClient() as client,
            client.stream("POST", server.url + path, json=ASK) as answer,
        ):
            async for line in answer.aiter_lines():
                heard.append(line)  # noqa: PERF401 - what came before the cut counts

    async with ModelServer([Reply(text="one two three", cut_after=2)]) as server:
        with pytest.raises(httpx2.RemoteProtocolError):
            await listen(server)
    assert "two" in "".join(heard)
    assert "three" not in "".join(heard)


@pytest.mark.parametrize(
    ("path", "end"), [("/v1/chat/completions", "finish"), ("/v1/messages", "message_stop")]
)
async def test_a_stream_can_end_without_a_reason(path: str, end: str) -> None:
    async with ModelServer([Reply(text="one"), Reply(text="one", ends_early=True)]) as server:
        whole, torn = [await lines(server, path) for _ in range(2)]
    assert "one" in "".join(torn)
    assert len(torn) < len(whole)


async def test_a_hanging_answer_continues_when_allowed_and_notices_a_client_that_leaves() -> None:
    async with ModelServer([Reply(text="one two", hang_after=1)] * 2) as server:
        reading = asyncio.create_task(lines(server, "/v1/messages"))
        await server.hangs.wait()
        server.may_go_on.set()
        assert "two" in "".join(await reading)
        server.may_go_on.clear()
        server.hangs.clear()
        reading = asyncio.create_task(lines(server, "/v1/messages"))
        await server.hangs.wait()
        reading.cancel()
        async with asyncio.timeout(10):
            await server.left.wait()


async def test_a_server_that_ends_while_it_hangs_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    async with ModelServer([Reply(text="one two", hang_after=1)]) as server:
        reading = asyncio.create_task(lines(server, "/v1/messages"))
        await server.hangs.wait()
    with pytest.raises(httpx2.HTTPError):
        await reading
    assert asyncio.all_tasks() == before


async def test_pieces_can_come_slowly() -> None:
    loop = asyncio.get_running_loop()
    async with ModelServer([Reply(text="one two three", pause_seconds=0.05)]) as server:
        began = loop.time()
        await lines(server, "/v1/messages")
    assert loop.time() - began >= 0.15


async def test_a_request_after_the_script_and_an_unknown_path_are_refused() -> None:
    async with ModelServer() as server, httpx2.AsyncClient() as client:
        ended = await client.post(f"{server.url}/v1/messages", json=ASK)
        lost = await client.post(f"{server.url}/v1/nowhere", json=ASK)
    assert (ended.status_code, lost.status_code) == (400, 404)
    assert "the script has ended" in ended.text
