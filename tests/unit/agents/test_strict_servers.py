"""Servers with strict chat templates answer with defaults: one system message, first, and roles that take turns."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from keryx.agents.model.agent import ModelAgent
from keryx.agents.model.choice import ModelChoice
from keryx.agents.model.contract import Access
from keryx.agents.model.guide import Guide
from keryx.agents.model.local_servers import LOCAL_SERVERS
from keryx.agents.model.providers.provider_setup import is_other_server, make_model, server_of
from keryx.agents.model.providers.server_limits import ServerLimits
from keryx.clock import SECOND
from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import (
    Message,
    NewMessage,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    text_message,
    text_of,
)
from keryx.errors import AgentFailed
from keryx.testing.clock import FakeClock
from keryx.testing.model_server import Asked, Call, ModelServer, Refusal, Reply
from tests.unit.agents import strict_servers as servers
from tests.unit.agents.stage import Noted, brief, message
from tests.unit.agents.strict_servers import Strict, Template, roles

CALL = ToolCallPart(call_id="c", name="look", arguments={"at": "the hotel"})
RESULT = ToolResultPart(call_id="c", name="look", output="a hotel")
COVER = Cover(
    session_id="s",
    no=1,
    branch_no=0,
    first_seq=1,
    last_seq=2,
    summary="Rome.",
    tokens_before=2,
    tokens_after=1,
)
HISTORY: tuple[Message | Cover, ...] = (
    COVER,
    message(3, "user", TextPart(text="one")),
    message(4, "user", TextPart(text="two")),
    message(5, "assistant", CALL),
    message(6, "tool", RESULT),
    message(7, "user", TextPart(text="quickly, please")),
    message(8, "assistant", TextPart(text="A hotel.")),
    message(9, "system", TextPart(text="The build is done.")),
    message(10, "user", TextPart(text="What is there?")),
)
"""A summary, neighbours of one role, a message between results and answer, and a report."""
REPLIES = (Reply(calls=[Call(name="look", call_id="d")]), Reply(text="Rome."), Reply(text="Still Rome."))
KINDS = [
    *(servers.vllm, servers.old_vllm, servers.ollama),
    *(servers.lm_studio, servers.lm_studio_in_stream, servers.llama_cpp),
]


async def answers(
    script: Callable[[Asked], Reply | Refusal],
    *,
    model: str = "openai:small",
    variables: Callable[[ModelServer], Mapping[str, str]] = lambda server: {
        "OPENAI_BASE_URL": server.openai_url
    },
    times: int = 1,
    joined: Sequence[NewMessage] = (),
) -> tuple[list[str], list[Asked]]:
    """Ask as often as this with one agent; return the answers and the requests."""
    clock, told = FakeClock(), []

    async def sleep(seconds: float) -> None:
        clock.advance(round(seconds * SECOND))

    async with ModelServer(script) as server:
        access = Access(variables=variables(server), timeout_seconds=20)
        agent = ModelAgent(ModelChoice(model=model), access, otherwise=Guide(), clock=clock, sleep=sleep)
        try:
            for _ in range(times):
                answer = await agent.run(brief(*HISTORY), Noted(joined=tuple(joined)))
                assert answer.message is not None
                told.append(text_of(answer.message.parts))
        finally:
            await agent.close()
        return told, server.requests


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("template", [servers.qwen, servers.mistral], ids=lambda each: each.__name__)
async def test_a_server_of_the_owner_s_is_asked_so_that_its_template_accepts_it_at_once(
    kind: Callable[[str], Refusal], template: Template
) -> None:
    refused: list[str] = []
    strict = Strict(wrap=kind, template=template, replies=REPLIES)
    told, asked = await answers(
        strict.script(refused), times=2, joined=[text_message("user", "and the sea?")]
    )
    assert (told, refused) == (["Rome.", "Still Rome."], [])
    for each in asked:
        assert [role for role in roles(each) if role == "system"] == ["system"]
        assert roles(each)[0] == "system"
        context = [str(one["role"]) for one in each.messages if "# This conversation" in str(one["content"])]
        assert context == ["user"]
    everything = str(asked[1].messages)
    assert all(said in everything for said in ("Rome.", "one", "two", "quickly", "The build", "and the sea?"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("template", "refusals"),
    [(servers.gemma, 1), (servers.old_mistral, 2)],
    ids=["no system role", "two roles"],
)
async def test_a_template_that_knows_fewer_roles_is_learned_from_its_errors_and_remembered(
    kind: Callable[[str], Refusal], template: Template, refusals: int
) -> None:
    refused: list[str] = []
    replies = REPLIES[1:] if template is servers.old_mistral else REPLIES
    strict = Strict(wrap=kind, template=template, replies=replies)
    told, asked = await answers(strict.script(refused), times=2)
    assert (told, len(refused)) == (["Rome.", "Still Rome."], refusals)
    assert "You are a helpful assistant." in str(asked[-1].messages[0]["content"])


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (servers.ollama, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (
            servers.vllm,
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        ),
        (servers.llama_cpp, "tools param requires --jinja flag"),
    ],
    ids=["ollama", "vllm", "llama.cpp"],
)
async def test_a_model_without_tools_answers_without_them(kind: Callable[[str], Refusal], words: str) -> None:
    refused: list[str] = []
    strict = Strict(
        wrap=kind, template=servers.mistral, replies=REPLIES[1:], takes_tools=False, no_tools=words
    )
    told, asked = await answers(strict.script(refused), times=2)
    assert (told, refused) == (["Rome.", "Still Rome."], [words])
    assert "tools" not in asked[-1].body
    assert "[result of look: a hotel]" in str(asked[-1].messages), "earlier results are told as text"


async def test_a_provider_s_own_address_is_asked_anew_after_such_an_error_and_remembered() -> None:
    limits, server = ServerLimits(), "https://api.example/v1"
    assert limits.of("openai:a", server=server, is_own=True) == frozenset()
    assert limits.learn(servers.SYSTEM_FIRST, "openai:a", server=server, known=frozenset())
    assert limits.of("openai:b", server=server, is_own=True) == {"system first"}, "of the whole server"
    known = limits.of("openai:a", server=server, is_own=True)
    assert limits.learn(servers.ALTERNATE, "openai:a", server=server, known=known)
    assert limits.of("openai:a", server=server, is_own=True) == {"system first", "no system"}
    assert limits.of("openai:b", server=server, is_own=True) == {"system first"}, "a template is of one model"


def test_any_other_error_teaches_nothing() -> None:
    limits = ServerLimits()
    for error in ("rate limit reached", "The model `x` does not exist", "context length exceeded"):
        assert not limits.learn(error, "openai:a", server="s", known=frozenset())


async def test_an_error_that_keeping_to_the_limits_does_not_cure_is_told() -> None:
    def script(_: Asked) -> Refusal:
        return servers.vllm(servers.SYSTEM_FIRST)

    with pytest.raises(AgentFailed, match="refused the request"):
        await answers(script)


@pytest.mark.parametrize(
    ("provider", "variables", "is_other"),
    [
        ("openai", {}, False),
        ("openai", {"OPENAI_BASE_URL": "https://eu.api.openai.com/v1"}, False),
        ("openai", {"OPENAI_BASE_URL": "https://openai.com.example/v1"}, True),
        ("openai", {"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"}, True),
        ("openrouter", {}, False),
        ("ollama", {}, True),
        ("lmstudio", {}, True),
        ("vllm", {"VLLM_BASE_URL": "http://gpu:8000/v1"}, True),
        ("offline", {}, True),
    ],
)
def test_a_base_url_that_is_not_the_provider_s_own_is_another_server(
    provider: str,
    variables: dict[str, str],
    is_other: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    assert is_other_server(provider, variables) is is_other


@pytest.mark.parametrize("provider", LOCAL_SERVERS)
async def test_a_local_server_needs_no_configuration_and_gets_no_key_of_others(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.delenv(f"{provider.upper()}_BASE_URL", raising=False)
    model = make_model(f"{provider}:small", {"OPENAI_API_KEY": "sk-secret"})
    assert server_of(model).rstrip("/") == LOCAL_SERVERS[provider].address
    assert getattr(model, "client").api_key != "sk-secret"  # noqa: B009 - not every model has one
    await model.__aenter__()
    await model.__aexit__(None, None, None)
    assert LOCAL_SERVERS["ollama"].address == "http://localhost:11434/v1"
