"""Each provider on a scripted server, reached by its own variables: answers, calls, thinking, and what goes wrong."""

import ast
import inspect
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json import dumps

import pytest

from keryx.agents.agent import Answer
from keryx.agents.model.agent import ModelAgent
from keryx.agents.model.choice import ModelChoice
from keryx.agents.model.contract import Access
from keryx.agents.model.guide import Guide
from keryx.agents.model.providers import failures
from keryx.clock import SECOND
from keryx.core.conversations.rules.message import MediaPart, NewMessage, TextPart, ToolCallPart, text_of
from keryx.core.values.model_name import PROVIDERS
from keryx.errors import AgentFailed
from keryx.testing.clock import FakeClock
from keryx.testing.model_server import Asked, Call, ModelServer, Refusal, Reply
from tests.unit.agents.stage import Noted, brief, message

NOT_FOR_CHAT = {
    "elevenlabs",
    "openai-decisions",
    "sentence-transformers",
    "system-one",
    "typesafe",
    "voyageai",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A model of a provider, and the variables that lead its client to a server."""

    model: str
    url: Callable[[ModelServer], str]

    @property
    def provider(self) -> str:
        return self.model.partition(":")[0]

    def variables(self, server: ModelServer, *, key: str) -> dict[str, str]:
        family = self.provider.upper()
        return {f"{family}_API_KEY": key, f"{family}_BASE_URL": self.url(server)}


KNOWN = (
    Known(model="openai:scripted", url=lambda server: server.openai_url),
    Known(model="openrouter:some/scripted", url=lambda server: server.openai_url),
    Known(model="ollama:scripted", url=lambda server: server.openai_url),
    Known(model="vllm:scripted", url=lambda server: server.openai_url),
    Known(model="anthropic:claude-scripted", url=lambda server: server.url),
    Known(model="google:gemini-scripted", url=lambda server: server.url),
)
each = pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.provider)
OPENAI, *_, ANTHROPIC, GOOGLE = KNOWN


async def ask(
    known: Known,
    server: ModelServer,
    *said: MediaPart,
    media: dict[str, bytes] | None = None,
    key: str = "right",
    pauses: list[float] | None = None,
    stage: Noted | None = None,
) -> tuple[Answer, Noted]:
    """Ask the model of a provider on this server."""
    clock = FakeClock()

    async def sleep(seconds: float) -> None:
        if pauses is not None:
            pauses.append(seconds)
        clock.advance(round(seconds * SECOND))

    async def read(hashes: Sequence[str]) -> dict[str, bytes]:
        return {digest: data for digest, data in (media or {}).items() if digest in hashes}

    agent = ModelAgent(
        ModelChoice(model=known.model),
        Access(variables=known.variables(server, key=key), timeout_seconds=20),
        otherwise=Guide(),
        clock=clock,
        read_media=read,
        sleep=sleep,
    )
    stage = stage or Noted()
    asked = brief(message(1, "user", TextPart(text="What is there?"), *said))
    try:
        return await agent.run(asked, stage), stage
    finally:
        await agent.close()


async def failure(
    known: Known, script: Sequence[Reply | Refusal] = (), *, key: str = "right", models: Sequence[str] = ()
) -> tuple[AgentFailed, list[Asked]]:
    async with ModelServer(script, key="right", models=models) as server:
        with pytest.raises(AgentFailed) as failed:
            await ask(known, server, key=key)
        return failed.value, server.requests


def test_every_provider_that_the_package_knows_can_be_named() -> None:
    from pydantic_ai.providers import infer_provider_class  # noqa: PLC0415 - it takes a second to load

    cases = ast.walk(ast.parse(inspect.getsource(infer_provider_class)))
    names = {
        node.value.value
        for node in cases
        if isinstance(node, ast.MatchValue)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    assert set(PROVIDERS) - {"offline", "lmstudio", "llamacpp"} == names - NOT_FOR_CHAT
    assert len(set(PROVIDERS)) == len(PROVIDERS)


@each
async def test_thinking_calls_answer_and_usage_are_read(known: Known) -> None:
    script = [
        Reply(thinking="hm", text="I look.", calls=[Call(name="look", arguments={"at": "the hotel"})]),
        Reply(text="A hotel in Rome.", input_tokens=40, cached_tokens=30, output_tokens=9),
    ]
    async with ModelServer(script, key="right") as server:
        answer, stage = await ask(known, server)
    assert answer.message is not None
    assert text_of(answer.message.parts) == "A hotel in Rome."
    used = answer.message
    assert (used.input_tokens, used.cached_tokens, used.output_tokens) == (40, 30, 9)
    assert (used.finish_reason, "".join(stage.said)) == ("stop", "I look.A hotel in Rome.")
    (step,) = stage.steps
    (call,) = [part for part in step.parts if isinstance(part, ToolCallPart)]
    assert (call.name, call.arguments) == ("look", {"at": "the hotel"})
    first, second = server.requests
    assert first.model == known.model.partition(":")[2]
    assert "Look at something." in str(first.body["tools"])
    assert "seen" in str(second.messages), "the result goes back"


@each
async def test_a_wrong_key_is_reported_with_the_variable_to_set(known: Known) -> None:
    failed, asked = await failure(known, key="wrong")
    name = known.provider
    assert failed.reason == (
        f"{name} refused the key. Set {name.upper()}_API_KEY in the environment or in the profile's .env."
    )
    assert (failed.retry_after, asked) == (None, [])


@each
async def test_an_unknown_model_is_reported_with_similar_names(known: Known) -> None:
    name = known.model.partition(":")[2]
    failed, _ = await failure(known, models=[f"{name}-2", "quite-another"])
    assert failed.reason == f"{known.provider} has no model {name!r}. Did you mean {name}-2?"


@each
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (429, "{} asks for a pause: its rate limit is reached."),
        (503, "{} is overloaded."),
        (500, "{} has a fault of its own (HTTP 500)."),
    ],
)
async def test_a_temporary_failure_is_reported_and_not_retried_by_the_package(
    known: Known, status: int, reason: str
) -> None:
    pauses: list[float] = []
    async with ModelServer([Refusal(status=status)] * 20) as server:
        with pytest.raises(AgentFailed) as failed:
            await ask(known, server, pauses=pauses)
    assert failed.value.reason == reason.format(known.provider)
    assert len(server.requests) == len(pauses) + 1, "every attempt is the agent's own"


@each
async def test_a_stream_without_a_finish_reason_is_not_an_answer(known: Known) -> None:
    failed, _ = await failure(known, [Reply(text="one two", ends_early=True)])
    assert failed.reason == f"the answer of {known.model} broke off in the middle."
    assert failed.retry_after == SECOND
    failed, _ = await failure(known, [Reply(calls=[Call(name="look")], ends_early=True)] * 20)
    assert failed.reason == f"the answer of {known.model} broke off in the middle."


# -------------------------------------------------------------------------------------- images and files

PNG = b"\x89PNG\r\n\x1a\n and more"
PDF = b"%PDF-1.7 and more"
SHOWN = {"a" * 64: PNG, "b" * 64: PDF, "c" * 64: b"milk, eggs"}


@pytest.mark.parametrize("known", [OPENAI, ANTHROPIC, GOOGLE], ids=lambda known: known.provider)
async def test_images_and_files_are_sent_and_unreadable_ones_named(
    known: Known,
) -> None:
    parts = (
        MediaPart(media_type="image/png", blob="a" * 64),
        MediaPart(media_type="application/pdf", blob="b" * 64, name="bill.pdf"),
        MediaPart(media_type="text/plain", blob="c" * 64, name="list.txt"),
        MediaPart(media_type="image/png", blob="d" * 64, name="gone.png"),
    )
    async with ModelServer([Reply(text="A cat.")]) as server:
        await ask(known, server, *parts, media=SHOWN)
    told = dumps(server.requests[0].messages)
    for data in (PNG, PDF):
        assert b64encode(data).decode() in told
    assert "[list.txt]\\nmilk, eggs" in told
    assert "[gone.png: you cannot see this, because it is too large or not in the store]" in told


async def test_an_image_that_arrives_during_the_turn_is_sent_too() -> None:
    image = MediaPart(media_type="image/png", blob="a" * 64)
    joined = (NewMessage(role="user", parts=(TextPart(text="And this?"), image)),)
    script = [Reply(calls=[Call(name="look")]), Reply(text="A cat.")]
    async with ModelServer(script) as server:
        await ask(OPENAI, server, media=SHOWN, stage=Noted(joined=joined))
    assert b64encode(PNG).decode() in dumps(server.requests[1].messages)


# ------------------------------------------------------------------------------------------------ sentences


@pytest.mark.parametrize(
    ("known", "refusal", "reason"),
    [
        (OPENAI, Refusal(status=429, kind="insufficient_quota"), failures.QUOTA.format(provider="openai")),
        (ANTHROPIC, Refusal(status=402, kind="billing_error"), failures.QUOTA.format(provider="anthropic")),
        (
            ANTHROPIC,
            Refusal(status=400, message="Your credit balance is too low to access the Anthropic API."),
            failures.QUOTA.format(provider="anthropic"),
        ),
        (
            GOOGLE,
            Refusal(status=403),
            "google refused the key. Set GOOGLE_API_KEY in the environment or in the profile's .env.",
        ),
    ],
)
async def test_a_permanent_failure_is_reported_at_once(known: Known, refusal: Refusal, reason: str) -> None:
    failed, asked = await failure(known, [refusal])
    assert (failed.reason, failed.retry_after, len(asked)) == (reason, None, 1)


@pytest.mark.parametrize("known", [OPENAI, ANTHROPIC, GOOGLE], ids=lambda known: known.provider)
async def test_an_overloaded_provider_is_retried_after_its_retry_after(known: Known) -> None:
    pauses: list[float] = []
    script: list[Reply | Refusal] = [
        Refusal(status=503, message="overloaded", retry_after_seconds=4),
        Reply(text="Here."),
    ]
    async with ModelServer(script) as server:
        answer, _ = await ask(known, server, pauses=pauses)
    assert answer.message is not None
    assert (len(server.requests), pauses) == (2, [4])
