"""The model agent against a scripted provider over HTTP, in both shapes: steps, thinking, usage, and failures."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from keryx.agents.agent import Answer, Brief
from keryx.agents.model.agent import STEPS_MAX, TOO_MANY_STEPS, WAY_BACK, ModelAgent
from keryx.agents.model.choice import ModelChoice
from keryx.agents.model.contract import Access
from keryx.agents.model.guide import Guide
from keryx.clock import SECOND
from keryx.core.context.rules.guide_turns import GREETING
from keryx.core.context.rules.prices import parse_price
from keryx.core.conversations.rules.message import (
    MediaPart,
    Message,
    NewMessage,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    text_of,
)
from keryx.core.conversations.rules.session_settings import ModelSettings
from keryx.core.conversations.rules.source import Source
from keryx.core.values.turn_states import TurnId
from keryx.errors import AgentFailed
from keryx.testing.clock import FakeClock
from keryx.testing.model_server import Asked, Call, ModelServer, Refusal, Reply
from tests.unit.agents.stage import MODELS, Noted, Shape, agent_of, brief, message

SHAPES: tuple[Shape, ...] = ("openai", "anthropic")
both = pytest.mark.parametrize("shape", SHAPES)
SOON_SECONDS = 3
"""A few milliseconds, on a machine with nothing else to do."""
TELEGRAM = Source(platform="telegram", chat_id="1", chat_type="group")


async def ask(
    script: Sequence[Reply | Refusal], shape: Shape = "openai", asked: Brief | None = None, **how: Any
) -> tuple[Answer, Noted, list[Asked]]:
    """Return the answer, what happened on the stage, and what the provider was asked."""
    stage = how.pop("stage", None) or Noted()
    async with ModelServer(script) as server:
        agent = agent_of(server, shape, **how)
        try:
            return await agent.run(asked or brief(), stage), stage, server.requests
        finally:
            await agent.close()


async def failure(script: Sequence[Reply | Refusal], shape: Shape = "openai", **how: Any) -> AgentFailed:
    with pytest.raises(AgentFailed) as failed:
        await ask(script, shape, **how)
    return failed.value


@both
async def test_an_answer_is_streamed_and_carries_its_usage(shape: Shape) -> None:
    reply = Reply(
        thinking="Let me see.", text="A hotel in Rome.", input_tokens=40, cached_tokens=30, output_tokens=9
    )
    answer, stage, _ = await ask([reply], shape)
    assert "".join(stage.said) == "A hotel in Rome."
    assert len(stage.said) == 4
    assert "".join(stage.thought) == "Let me see."
    said = answer.message
    assert said is not None
    assert text_of(said.parts) == "A hotel in Rome."
    assert [part.text for part in said.parts if isinstance(part, ThinkingPart)] == ["Let me see."]
    assert (said.input_tokens, said.cached_tokens, said.output_tokens) == (40, 30, 9)
    assert (said.finish_reason, answer.silent) == ("stop", False)


@both
async def test_calls_are_steps_whose_results_and_joined_messages_the_model_reads_next(shape: Shape) -> None:
    joined = (NewMessage(role="user", parts=(TextPart(text="Also the bar!"),)),)
    calls = [Call(name="look", arguments={"at": "hotel"}, call_id="c1"), Call(name="look", call_id="c2")]
    script = [
        Reply(thinking="hm", text="I look.", calls=calls, output_tokens=7),
        Reply(calls=[Call(name="look", call_id="c1")]),
        Reply(text="Nice."),
    ]
    answer, stage, requests = await ask(script, shape, stage=Noted(joined=joined))
    assert answer.message is not None
    assert text_of(answer.message.parts) == "Nice."
    first, second = stage.steps
    made = [part for part in first.parts if isinstance(part, ToolCallPart)]
    assert [(call.call_id, call.arguments) for call in made] == [("c1", {"at": "hotel"}), ("c2", {})]
    assert (first.output_tokens, text_of(first.parts)) == (7, "I look.")
    assert [part.call_id for part in second.parts if isinstance(part, ToolCallPart)] == ["c1_2"]
    told = str(requests[1].messages)
    assert told.count("seen") == 2
    assert told.index("seen") < told.index("Also the bar!")
    assert "Also the bar!" not in str(requests[0].messages)
    if shape == "anthropic":
        assert "'signature': 'signed'" in told, "thinking goes back with its proof"
    else:
        assert "'reasoning_content': 'hm'" in told


async def test_with_anthropic_the_prompt_prefix_stays_the_same_and_the_context_comes_last() -> None:
    _, _, (first, second) = await ask([Reply(calls=[Call(name="look")]), Reply(text="Nice.")], "anthropic")
    assert "helpful assistant" in str(first.body["system"])
    assert "terminal of this machine" not in str(first.body["system"])
    for asked in (first, second):
        assert "terminal of this machine" in str(asked.messages[-1])
        assert asked.body["tools"] == first.body["tools"]
    assert "terminal of this machine" not in str(second.messages[:-1])
    kept = len(first.messages) - 1
    assert second.messages[:kept] == first.messages[:kept]


async def test_on_another_server_the_context_is_in_the_newest_message_and_the_prompt_prefix_stays_the_same() -> (
    None
):
    _, _, (first, second) = await ask([Reply(calls=[Call(name="look")]), Reply(text="Nice.")])
    system, said = (str(each["content"]) for each in first.messages)
    assert "helpful assistant" in system
    assert "terminal of this machine" not in system
    assert "terminal of this machine" in said
    assert said.endswith("\n\nWhat is there?")
    assert second.messages[:2] == first.messages
    assert [asked.body["tools"] for asked in (first, second)] == [first.body["tools"]] * 2
    assert "terminal of this machine" not in str(second.messages[2:])


async def test_a_turn_continued_after_a_crash_sends_the_same_request() -> None:
    script = [Reply(thinking="hm", text="I look.", calls=[Call(name="look")]), Reply(text="Nice.")]
    _, stage, (_, sent) = await ask(script)
    (step,) = stage.steps
    call = step.parts[-1]
    assert isinstance(call, ToolCallPart)
    done = (await Noted().act(step)).results
    after_crash = brief(
        message(1, "user", TextPart(text="What is there?")),
        message(2, "assistant", *step.parts),
        message(3, "tool", *done),
    )
    _, _, (sent_again,) = await ask([Reply(text="Nice.")], asked=after_crash)
    assert sent_again.body == sent.body


async def test_invalid_arguments_reach_the_stage_unchanged() -> None:
    _, stage, requests = await ask(
        [Reply(calls=[Call(name="look", arguments='{"at": ')]), Reply(text="Sorry.")]
    )
    (call,) = stage.steps[0].parts
    assert isinstance(call, ToolCallPart)
    assert call.arguments == '{"at": '
    assert len(requests) == 2


async def test_after_too_many_steps_the_model_must_answer_or_the_turn_fails() -> None:
    calling = [Reply(calls=[Call(name="look", arguments={"at": no})]) for no in range(STEPS_MAX + 1)]
    script = [*calling[:-1], Reply(text="Enough.")]
    answer, stage, requests = await ask(script)
    assert answer.message is not None
    assert (len(stage.steps), text_of(answer.message.parts)) == (STEPS_MAX, "Enough.")
    assert [asked.body["tool_choice"] for asked in requests[-2:]] == ["auto", "none"]
    failed = await failure(calling)
    assert (failed.reason, failed.retry_after) == (TOO_MANY_STEPS, None)


@both
async def test_a_model_that_goes_in_circles_is_told_in_the_result_and_stopped(shape: Shape) -> None:
    stage, circle = Noted(), [Reply(calls=[Call(name="look")])] * 6
    async with ModelServer(circle) as server:
        agent = agent_of(server, shape)
        with pytest.raises(AgentFailed, match="in circles: it called look 5 times") as failed:
            await agent.run(brief(), stage)
        await agent.close()
    assert (len(stage.steps), failed.value.retry_after) == (5, None)
    told = ["Keryx notes" in str(each.messages) for each in server.requests]
    assert told == [False, False, False, True, True]


async def test_a_circle_goes_on_after_a_crash_or_a_person_s_answer() -> None:
    def stored(seq: int, role: Role, part: Part) -> Message:
        return message(seq, role, part)._replace(turn_id=TurnId(1))

    steps = [
        each
        for seq in range(2, 12, 2)
        for each in (
            stored(seq, "assistant", ToolCallPart(call_id=f"c{seq}", name="look", arguments={})),
            stored(seq + 1, "tool", ToolResultPart(call_id=f"c{seq}", name="look", output="seen")),
        )
    ]
    asked = brief(stored(1, "user", TextPart(text="look")), *steps)
    async with ModelServer([Reply(text="never")]) as server:
        agent = agent_of(server)
        with pytest.raises(AgentFailed, match="in circles"):
            await agent.run(asked, Noted())
        await agent.close()
        assert server.requests == []


@both
@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (
            Refusal(status=401),
            "{} refused the key. Set {}_API_KEY in the environment or in the profile's .env.",
        ),
        (
            Refusal(status=403),
            "{} refused the key. Set {}_API_KEY in the environment or in the profile's .env.",
        ),
        (
            Refusal(status=422, message="temperature is odd"),
            "{} refused the request (HTTP 422): temperature is odd",
        ),
    ],
)
async def test_a_permanent_failure_is_reported_at_once(shape: Shape, refusal: Refusal, told: str) -> None:
    failed = await failure([refusal], shape)
    assert failed.reason == told.format(shape, shape.upper())
    assert failed.retry_after is None


async def test_quota_and_length_errors_are_readable() -> None:
    quota = await failure([Refusal(status=429, kind="insufficient_quota")])
    assert quota.reason == "the account at openai has used up its quota; its owner can raise it there."
    long = Refusal(
        status=400, kind="context_length_exceeded", message="This model's maximum context length is 8"
    )
    for failed in (
        await failure([long]),
        await failure([Refusal(status=400, message="prompt is too long: 9 tokens > 8 maximum")], "anthropic"),
    ):
        assert "this is too long for" in failed.reason
        assert (failed.retry_after, quota.retry_after) == (None, None)


@both
async def test_an_unknown_model_is_reported_with_similar_names(shape: Shape) -> None:
    async with ModelServer(models=["claude-scripted-2", "scripted-2", "other"]) as server:
        agent = agent_of(server, shape)
        with pytest.raises(AgentFailed) as failed:
            await agent.run(brief(), Noted())
        await agent.close()
    name = MODELS[shape].partition(":")[2]
    assert failed.value.reason.startswith(f"{shape} has no model {name!r}. Did you mean {name}-2")


async def test_without_the_provider_s_list_known_names_are_suggested() -> None:
    failed = await failure([Refusal(status=404)], choice=ModelChoice(model="openai:gpt-5-minni"))
    assert "gpt-5-mini" in failed.reason


@both
@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_a_temporary_failure_is_retried_after_the_provider_s_pause(shape: Shape, status: int) -> None:
    pauses: list[float] = []
    script: list[Reply | Refusal] = [
        Refusal(status=status, retry_after_seconds=7),
        Refusal(status=status),
        Reply(text="Here."),
    ]
    answer, stage, requests = await ask(script, shape, sleeps=pauses.append)
    assert answer.message is not None
    assert (len(requests), pauses) == (3, [7, 2])
    # Whoever waits is told why.
    assert [told.partition(". ")[2] for told in stage.pauses] == [
        "Trying again in 7 s.",
        "Trying again in 2 s.",
    ]


async def test_after_the_retry_limit_the_gateway_retries_the_turn() -> None:
    pauses: list[float] = []
    failed = await failure([Refusal(status=503)] * 20, sleeps=pauses.append)
    assert failed.reason == "openai is overloaded."
    assert failed.retry_after == 32 * SECOND
    assert sum(pauses) <= 60
    some = await failure([Refusal(status=429, retry_after_seconds=120)], sleeps=pauses.append)
    assert some.retry_after == 120 * SECOND


async def test_a_turn_does_not_wait_for_a_pause_of_an_hour() -> None:
    failed = await failure([Refusal(status=429, retry_after_seconds=3_600)])
    assert (failed.reason, failed.retry_after) == (
        "openai asks for a pause: its rate limit is reached. It may be asked again in 60 minutes.",
        None,
    )


@both
async def test_an_answer_that_is_cut_off_is_retried_as_a_whole_turn(shape: Shape) -> None:
    stage = Noted()
    failed = await failure([Reply(text="one two three", cut_after=2)], shape, stage=stage)
    assert stage.said == ["one", " two"]
    assert (failed.reason, failed.retry_after) == (f"the connection to {shape} failed.", SECOND)


@both
async def test_a_connection_lost_before_the_first_word_is_retried(shape: Shape) -> None:
    answer, _, requests = await ask([Reply(text="one", cut_after=0), Reply(text="Here.")], shape)
    assert answer.message is not None
    assert len(requests) == 2


async def test_an_answer_without_a_finish_reason_is_not_an_answer() -> None:
    failed = await failure([Reply(text="one two", ends_early=True)], "anthropic")
    assert failed.reason == "the answer of anthropic:claude-scripted broke off in the middle."
    assert failed.retry_after == SECOND


@both
async def test_an_empty_answer_is_retried(shape: Shape) -> None:
    answer, _, requests = await ask([Reply(), Reply(text="Here.")], shape)
    assert answer.message is not None
    assert len(requests) == 2


async def test_a_refusal_by_the_content_filter_is_reported() -> None:
    failed = await failure([Reply(finish="content_filter")])
    assert (failed.reason, failed.retry_after) == (
        "openai refused to answer this (its content filter).",
        None,
    )


@both
async def test_a_silent_model_times_out(shape: Shape) -> None:
    stage = Noted()
    failed = await failure([Reply(text="one two", hang_after=1)], shape, stage=stage, timeout_seconds=1.5)
    assert failed.reason == f"{MODELS[shape]} was silent for too long."
    assert (failed.retry_after, stage.said) == (SECOND, ["one"])


async def test_a_slow_model_does_not_time_out() -> None:
    reply = Reply(text="one two three four five six", pause_seconds=0.4)
    answer, stage, _ = await ask([reply], timeout_seconds=2)
    assert answer.message is not None
    assert len(stage.said) == 6


async def test_an_answer_that_never_ends_times_out_too() -> None:
    reply = Reply(text="word " * 1_000, pause_seconds=0.02)
    stage = Noted()
    failed = await failure([reply], stage=stage, answer_seconds=1.0)
    assert failed.reason == "openai:scripted was not done with its answer in time."
    assert failed.retry_after is None
    assert 0 < len(stage.said) < 1_000


@both
async def test_a_cancelled_turn_closes_the_request_at_once(shape: Shape) -> None:
    stage = Noted()
    async with ModelServer([Reply(text="one two", hang_after=1)]) as server:
        agent = agent_of(server, shape)
        running = asyncio.create_task(agent.run(brief(), stage))
        await server.hangs.wait()
        running.cancel()
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(10):
            await server.left.wait()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert asyncio.get_running_loop().time() - began < SOON_SECONDS
        await agent.close()


async def test_a_fallback_is_asked_at_once_and_its_failure_is_reported_too() -> None:
    choice = ModelChoice(model="openai:scripted", fallbacks=["anthropic:claude-scripted", "openai:scripted"])
    pauses: list[float] = []
    answer, stage, requests = await ask(
        [Refusal(status=503), Reply(text="I stand in.")], choice=choice, sleeps=pauses.append
    )
    assert answer.message is not None
    assert [asked.model for asked in stage.asked] == ["openai:scripted", "anthropic:claude-scripted"]
    assert text_of(answer.message.parts) == "I stand in."
    assert ([asked.path for asked in requests], pauses) == (["/v1/chat/completions", "/v1/messages"], [])
    failed = await failure([Refusal(status=401), Refusal(status=401)], choice=choice)
    assert failed.reason.startswith("openai refused the key.")
    assert "Nor could another: anthropic refused the key." in failed.reason


async def test_a_model_that_failed_for_good_is_not_retried_with_the_others() -> None:
    choice = ModelChoice(model="openai:scripted", fallbacks=["anthropic:claude-scripted"])
    script: list[Reply | Refusal] = [Refusal(status=401), Refusal(status=529), Reply(text="Here.")]
    _, _, requests = await ask(script, choice=choice)
    assert [asked.path for asked in requests] == ["/v1/chat/completions", "/v1/messages", "/v1/messages"]


async def test_the_session_s_model_wins_over_the_platform_s_and_the_configured_one() -> None:
    choice = ModelChoice(model="a:b", by_platform={"telegram": "c:d"}, fallbacks=["e:f"])
    settings = ModelSettings(model="g:h")
    assert choice.models_for(brief()) == ["a:b", "e:f"]
    assert choice.models_for(brief(source=TELEGRAM)) == ["c:d", "e:f"]
    assert choice.models_for(brief(source=TELEGRAM, model_settings=settings)) == ["g:h", "e:f"]
    assert choice.models_for(brief(model="i:j", model_settings=settings)) == ["i:j", "e:f"]
    assert ModelChoice().models_for(brief()) == []


def test_the_model_of_a_failed_attempt_is_asked_last() -> None:
    choice = ModelChoice(model="a:b", fallbacks=["c:d", "e:f"])
    assert choice.models_for(replace(brief(), has_failed=True)) == ["c:d", "e:f", "a:b"]


async def test_anthropic_requests_mark_the_cached_text() -> None:
    script = [Reply(calls=[Call(name="look")], text="So"), Reply(text="Here.", cached_tokens=4)]
    answer, _, (first, second) = await ask(script, "anthropic")
    assert answer.message is not None
    assert answer.message.cached_tokens == 4

    def kept(blocks: Any) -> list[bool]:
        return ["cache_control" in block for block in blocks]

    # The instructions, and what is the beginning of the next question too; not the context block behind it.
    assert kept(first.body["system"]) == kept(second.body["system"]) == [False, True]
    assert [kept(each["content"]) for each in first.messages] == [[True, False]]
    assert [kept(each["content"]) for each in second.messages] == [[False], [False, False], [True, False]]


async def test_settings_of_the_session_reach_the_provider() -> None:
    settings = ModelSettings(temperature=0.5, tokens_max=99, extra={"top_k": 3})
    _, _, (asked,) = await ask([Reply(text="Here.")], "anthropic", brief(model_settings=settings))
    assert (asked.body["temperature"], asked.body["max_tokens"], asked.body["top_k"]) == (0.5, 99, 3)
    for effort, sent in (("low", "low"), ("none", "none")):
        settings = ModelSettings(reasoning_effort=effort)  # type: ignore[arg-type]
        asking = brief(model="openai:gpt-5.1", model_settings=settings)
        _, _, (asked,) = await ask([Reply(text="Here.")], asked=asking)
        assert asked.body["reasoning_effort"] == sent


async def test_known_models_have_a_price() -> None:
    choice = ModelChoice(model="openai:gpt-5")
    million = Reply(text="Here.", input_tokens=1_000_000, output_tokens=0)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ModelServer([million, million]))
        agent = agent_of(server, choice=choice)
        stack.push_async_callback(agent.close)
        answer = await agent.run(brief(), Noted())
        unknown = await agent.run(brief(model="openai:scripted"), Noted())
    assert answer.message is not None
    assert unknown.message is not None
    assert answer.message.cost_micros > 0
    assert unknown.message.cost_micros == 0


async def test_images_are_shown_to_the_model_where_the_store_has_them() -> None:
    seen: list[Sequence[str]] = []

    async def read(hashes: Sequence[str]) -> dict[str, bytes]:
        seen.append(hashes)
        return {hashes[0]: b"\x89PNG"}

    image = MediaPart(media_type="image/png", blob="a" * 64)
    async with ModelServer([Reply(text="A cat.")]) as server:
        agent = ModelAgent(
            ModelChoice(model="openai:gpt-5"),
            Access(variables={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.openai_url}),
            otherwise=Guide(),
            clock=FakeClock(),
            read_media=read,
        )
        await agent.run(brief(message(1, "user", TextPart(text="What is it?"), image)), Noted())
        await agent.close()
    assert seen == [["a" * 64]]
    assert "data:image/png;base64,iVBORw==" in str(server.requests[0].messages)


async def test_in_a_group_the_model_reads_who_spoke() -> None:
    spoken = message(1, "user", TextPart(text="hello"))._replace(author="Ben")
    _, _, (asked,) = await ask([Reply(text="Here.")], asked=brief(spoken, source=TELEGRAM))
    assert str(asked.messages[1]["content"]).endswith('\n\n"Ben" says: hello')


async def test_before_a_reset_notes_are_kept_without_an_answer() -> None:
    script = [Reply(text="I note.", calls=[Call(name="look")]), Reply(text="Done.")]
    answer, stage, requests = await ask(script, asked=brief(purpose="flush"))
    assert (answer.message, answer.silent, len(stage.steps), stage.said) == (None, True, 1, [])
    assert answer.unsaid is not None
    assert text_of(answer.unsaid.parts) == "Done."
    assert "will soon be reset" in str(requests[0].messages)


async def test_a_flush_without_tools_asks_no_model() -> None:
    answer, _, requests = await ask([], asked=brief(purpose="flush", tools=()))
    assert (answer.message, answer.silent, requests) == (None, True, [])


async def test_a_title_is_requested_with_the_first_messages() -> None:
    said = [
        message(1, "user", TextPart(text="Rome? " + "x" * 5_000)),
        message(2, "assistant", TextPart(text="Yes.")),
    ]
    answer, stage, (asked,) = await ask(
        [Reply(text="A trip", output_tokens=9, thinking_tokens=4)], asked=brief(*said, purpose="title")
    )
    assert (answer.message, answer.silent, stage.said, stage.steps) == (None, True, [], [])
    assert answer.unsaid is not None
    assert (text_of(answer.unsaid.parts), answer.unsaid.thinking_tokens) == ("A trip", 4)
    assert "tools" not in asked.body
    assert "Name this conversation" in str(asked.messages)
    assert len(str(asked.messages)) < 3_000


async def test_the_owner_s_price_wins_over_the_list() -> None:
    prices = {"openai:gpt-5": parse_price(("1", "0.5", "2")), "openai:local": parse_price(("0.000001", "0"))}
    reply = Reply(text="Here.", input_tokens=1_000_000, cached_tokens=400_000, output_tokens=500_000)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ModelServer([reply, reply]))
        variables = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.openai_url}
        agent = ModelAgent(
            ModelChoice(),
            Access(variables=variables, timeout_seconds=20, prices=prices),
            otherwise=Guide(),
            clock=FakeClock(),
        )
        stack.push_async_callback(agent.close)
        costs = []
        for name in prices:
            answer = await agent.run(brief(model=name), Noted())
            assert answer.message is not None
            costs.append(answer.message.cost_micros)
    assert costs == [600_000 + 200_000 + 1_000_000, 1]


@both
async def test_thinking_tokens_are_counted_as_output(shape: Shape) -> None:
    reply = Reply(text="Here.", thinking="hm", output_tokens=20, thinking_tokens=15)
    answer, _, _ = await ask([reply], shape)
    assert answer.message is not None
    assert (answer.message.output_tokens, answer.message.thinking_tokens) == (20, 15)


async def test_without_a_model_the_guide_answers() -> None:
    answer, _, requests = await ask([], choice=ModelChoice())
    assert answer.message is not None
    assert (text_of(answer.message.parts).startswith(GREETING), requests) == (True, [])


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("gpt-5", "'gpt-5' is not the name of a model; write it as provider:model"),
        ("anthropc:claude", "there is no provider 'anthropc'. Did you mean anthropic"),
        ("mistral:small", "the package for mistral is not installed"),
        ("openrouter:some/model", "there is no key for openrouter. Set OPENROUTER_API_KEY"),
        ("google:gemini", "there is no key for google. Set GOOGLE_API_KEY"),
    ],
)
async def test_a_model_that_cannot_be_set_up_is_reported_with_a_remedy(
    model: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENROUTER_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    failed = await failure([], choice=ModelChoice(model=model))
    assert failed.reason.startswith(told)
    assert failed.retry_after is None


async def test_a_failure_of_the_conversation_s_model_names_the_command_to_undo_the_choice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    chosen = brief(model="openrouter:some/model")
    failed = await failure([], asked=chosen, choice=ModelChoice())
    assert failed.reason.endswith(WAY_BACK)
    configured = await failure([], choice=ModelChoice(model="openrouter:some/model"))
    assert WAY_BACK not in configured.reason


async def test_warming_up_loads_what_a_turn_needs() -> None:
    async with ModelServer() as server:
        agent = agent_of(
            server, choice=ModelChoice(model="openai:scripted", by_platform={"local": "nobody:x"})
        )
        await agent.warm_up()
        assert {"keryx.agents.model.providers.caller", "openai"} <= sys.modules.keys()
        await agent.close()
        await agent.close()


async def test_it_may_be_closed_and_asked_again() -> None:
    async with ModelServer([Reply(text="Here.")] * 2) as server:
        agent = agent_of(server)
        for _ in range(2):
            assert (await agent.run(brief(), Noted())).message is not None
            await agent.close()
