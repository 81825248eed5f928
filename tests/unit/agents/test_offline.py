"""The offline model: what it is sent, and the life of its process, with a real program that has the same protocol."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from keryx.agents.model.agent import ModelAgent
from keryx.agents.model.choice import ModelChoice
from keryx.agents.model.contract import Access, CallFailed, ModelPrompt
from keryx.agents.model.guide import Guide
from keryx.agents.model.offline import (
    INSTRUCTIONS,
    MISSING,
    MODEL,
    PROMPT_TOKENS_MAX,
    WHEELS,
    ModelRouter,
    OfflineProcess,
    fit_prompt,
    missing,
    tokens,
)
from keryx.agents.model.offline_child import CONTEXT_TOKENS, ENGINE, WEIGHTS, start_model
from keryx.agents.model.providers.caller import ProviderCaller
from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import (
    NewMessage,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    text_message,
    text_of,
)
from keryx.core.values.model_name import check_model_name
from keryx.errors import AgentFailed
from keryx.testing.clock import FakeClock
from tests.architecture.source import ROOT
from tests.unit.agents.offline_program import PROGRAM
from tests.unit.agents.stage import LOOK, Noted, brief

PATIENCE_SECONDS = 60


def prompt_of(*said: NewMessage | Cover, **fields: Any) -> ModelPrompt:
    return ModelPrompt(
        instructions="Long ones.", context="You are in a terminal.", messages=said, tools=(LOOK,), **fields
    )


def caller(*how: str) -> tuple[ModelRouter, OfflineProcess]:
    process = OfflineProcess((*PROGRAM, *how), packages=())
    return ModelRouter(ProviderCaller, Access(), process=process), process


async def asked(offline: ModelRouter, prompt: ModelPrompt, model: str = MODEL) -> dict[str, Any]:
    """Ask, and return what the program was sent."""
    answer = await offline.ask(model, prompt, Noted())
    sent: dict[str, Any] = json.loads(text_of(answer.parts))
    return sent


async def refusal(offline: ModelRouter, model: str = MODEL) -> str:
    with pytest.raises(CallFailed) as failed:
        await offline.ask(model, prompt_of(text_message("user", "Hello")), Noted())
    await offline.close()
    return failed.value.reason


def number_of(process: OfflineProcess) -> int | None:
    return process.pid


def runs(pid: int) -> bool:
    """Say whether a process runs; one that is only not yet buried does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def until_gone(pid: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while runs(pid):  # noqa: ASYNC110 - a process that is no child of ours tells nobody of its end
            await asyncio.sleep(0.02)


def test_the_offline_model_gets_the_texts_without_tools_results_and_context() -> None:
    call = ToolCallPart(call_id="c", name="look", arguments={})
    result = ToolResultPart(call_id="c", name="look", output="seen")
    cover = Cover(
        session_id="s",
        no=1,
        branch_no=0,
        first_seq=1,
        last_seq=4,
        summary="They spoke of Rome.",
        focus=None,
        tokens_before=9,
        tokens_after=3,
    )
    small = fit_prompt(
        prompt_of(
            cover,
            NewMessage(role="user", parts=(TextPart(text="Hello"),), author="Ana"),
            NewMessage(role="assistant", parts=(call,)),
            NewMessage(role="tool", parts=(result,)),
            text_message("assistant", "Hello!"),
        )
    )
    assert (small.instructions, small.context, small.tools) == (INSTRUCTIONS, "", ())
    said = [(each.role, text_of(each.parts)) for each in small.messages if isinstance(each, NewMessage)]
    assert said == [("user", "They spoke of Rome."), ("user", "Hello"), ("assistant", "Hello!")]


@pytest.mark.parametrize("text", ["word " * 400, "0123456789" * 60, "静かなカフェ" * 60])
def test_only_the_newest_messages_that_fit_are_sent(text: str) -> None:
    small = fit_prompt(prompt_of(*[text_message("user", f"{number} {text}") for number in range(9)]))
    texts = [text_of(each.parts) for each in small.messages if isinstance(each, NewMessage)]
    assert 0 < len(texts) < 9
    assert texts[-1] == f"8 {text}"
    assert sum(map(tokens, texts)) <= PROMPT_TOKENS_MAX


def test_a_message_that_is_too_long_keeps_its_end() -> None:
    (kept,) = fit_prompt(prompt_of(text_message("user", "a" * 90_000 + " What now?"))).messages
    assert isinstance(kept, NewMessage)
    assert text_of(kept.parts).endswith(" What now?")
    assert tokens(text_of(kept.parts)) <= PROMPT_TOKENS_MAX


async def test_the_first_call_starts_the_process_and_the_next_reuses_it() -> None:
    offline, process = caller()
    await offline.prepare(MODEL)
    assert number_of(process) is None
    sent = await asked(offline, prompt_of(text_message("user", "Hello")), "offline")
    assert sent == {
        "messages": [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": "Hello"}],
        "tools": None,
    }
    first = number_of(process)
    assert first is not None
    both = [asked(offline, prompt_of(text_message("user", text))) for text in ("One", "Two")]
    assert [each["messages"][1]["content"] for each in await asyncio.gather(*both)] == ["One", "Two"]
    assert number_of(process) == first
    await offline.close()
    assert number_of(process) is None
    assert not runs(first)


async def test_a_process_that_died_is_started_again() -> None:
    offline, process = caller()
    await asked(offline, prompt_of(text_message("user", "Hello")))
    first = number_of(process)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while number_of(process) is not None:  # noqa: ASYNC110 - asyncio hears of it by itself
            await asyncio.sleep(0.01)
    await asked(offline, prompt_of(text_message("user", "Hello")))
    assert number_of(process) not in (None, first)
    await offline.close()


async def test_the_process_ends_with_its_parent_even_if_that_is_killed() -> None:
    parent = await asyncio.create_subprocess_exec(*PROGRAM, "parent", stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(await asyncio.wait_for(parent.stdout.readline(), PATIENCE_SECONDS))
    assert runs(pid)
    parent.kill()
    await parent.wait()
    await until_gone(pid)


async def test_a_turn_that_is_stopped_while_the_model_loads_leaves_no_process() -> None:
    offline, process = caller("silent")
    asking = asyncio.create_task(asked(offline, prompt_of(text_message("user", "Hello"))))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while number_of(process) is None:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
    pid = number_of(process)
    assert pid is not None
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert number_of(process) is None
    assert not runs(pid)


@pytest.mark.parametrize(
    ("how", "told"),
    [("broken", "RuntimeError: the weights are torn"), ("gone", "its process ended with 3")],
)
async def test_a_model_that_does_not_start_is_reported(how: str, told: str) -> None:
    offline, process = caller(how)
    assert await refusal(offline) == f"the offline model could not be started ({told})."
    assert number_of(process) is None


async def test_a_missing_program_is_reported() -> None:
    process = OfflineProcess(("/nowhere/python",), packages=())
    told = await refusal(ModelRouter(ProviderCaller, Access(), process=process))
    assert told.startswith("the offline model could not be started (")


async def test_a_missing_model_is_reported_with_the_install_command() -> None:
    process = OfflineProcess(PROGRAM, packages=("no_such_package",))
    offline = ModelRouter(ProviderCaller, Access(), process=process)
    with pytest.raises(CallFailed, match="keryx offline install"):
        await offline.prepare(MODEL)
    assert await refusal(offline) == MISSING
    assert missing(("json", "no_such_package")) == ["no_such_package"]


async def test_an_unknown_offline_model_is_refused() -> None:
    offline, _ = caller()
    assert (
        await refusal(offline, "offline:gpt-5")
        == "'offline:gpt-5' is not there: the offline model is offline:smollm2."
    )


async def test_other_models_go_to_their_providers() -> None:
    offline, process = caller()
    with pytest.raises(CallFailed, match="there is no provider 'nobody'"):
        await offline.prepare("nobody:claude")
    assert (await refusal(offline, "nobody:claude")).startswith("there is no provider 'nobody'")
    assert number_of(process) is None


async def test_an_agent_knows_the_offline_model_by_its_name() -> None:
    agent = ModelAgent(ModelChoice(model="offline:none"), Access(), otherwise=Guide(), clock=FakeClock())
    with pytest.raises(AgentFailed, match="the offline model is offline:smollm2"):
        await agent.run(brief(), Noted())
    await agent.close()


def test_the_engine_is_given_the_token_one_thread_and_the_weights_without_loading_their_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / WEIGHTS
    weights.mkdir()
    (weights / "__init__.py").write_text("raise ImportError('it wants another engine')")
    (weights / "small.gguf").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, ENGINE, SimpleNamespace(CommonParams=_Settings, Server=_Server))
    url, server = start_model("secret")
    assert isinstance(server, _Server)
    given = server.settings
    assert url == "http://127.0.0.1:1"
    assert (given.port, given.api_keys, given.n_ctx) == (0, ["secret"], CONTEXT_TOKENS)
    assert (given.cpuparams.n_threads, given.cpuparams_batch.n_threads) == (1, 1)
    assert given.model.path == str(weights / "small.gguf")


class _Settings(SimpleNamespace):
    """The engine's settings, as far as they are nested."""

    def __init__(self) -> None:
        nested = ("model", "cpuparams", "cpuparams_batch", "sampling")
        super().__init__(**{name: SimpleNamespace() for name in nested})


class _Server:
    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self.listening_address = "http://127.0.0.1:1"


def test_offline_alone_names_the_model_and_the_extra_pins_its_engine() -> None:
    assert check_model_name("offline") == MODEL
    assert f'offline = ["{WHEELS[0]}"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
