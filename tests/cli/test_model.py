"""A model in the terminal, with only its name and the provider's own variables."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keryx.testing.model_server import ModelServer, Refusal, Reply
from tests.architecture.source import ROOT

PATIENCE_SECONDS = 60


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer([Reply(thinking="hm", text="Rome, of course.")], key="sk-right") as server:
        yield server


def environment(server: ModelServer, home: Path, **variables: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "src"),
        "KERYX_HOME": str(home),
        "KERYX_MODEL": "openai:scripted",
        "OPENAI_BASE_URL": server.openai_url,
        **variables,
    }


async def start(environ: dict[str, str], *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "keryx", *arguments),
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def printed(environ: dict[str, str], text: str) -> tuple[str, str, int | None]:
    process = await start(environ, "--print", text)
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    return out.decode(), err.decode(), process.returncode


async def test_a_model_name_and_a_key_are_sufficient_for_an_answer(
    server: ModelServer, tmp_path: Path
) -> None:
    environ = environment(server, tmp_path, OPENAI_API_KEY="sk-right")
    del environ["KERYX_HOME"]
    # A new account, in which only the name of the model is set.
    environ["HOME"] = str(tmp_path)
    assert await printed(environ, "Where?") == ("Rome, of course.\n", "", 0)
    (asked,) = server.requests
    assert asked.messages[1]["role"] == "user"
    assert re.search(
        r"\n\[\w+day, [\d-]+ [\d:]+ \S+, UTC[+-]\d{4}\]\nWhere\?$", str(asked.messages[1]["content"])
    )


async def test_the_key_may_be_in_the_profile_s_env(server: ModelServer, tmp_path: Path) -> None:
    secrets = tmp_path / "main" / ".env"
    secrets.parent.mkdir()
    secrets.write_text("OPENAI_API_KEY=sk-right\n")
    secrets.chmod(0o600)
    assert (await printed(environment(server, tmp_path), "Where?"))[0] == "Rome, of course.\n"


async def test_a_wrong_key_is_reported_as_an_error(server: ModelServer, tmp_path: Path) -> None:
    out, err, code = await printed(environment(server, tmp_path, OPENAI_API_KEY="sk-wrong"), "Where?")
    assert (out, code) == ("", 1)
    assert "openai refused the key. Set OPENAI_API_KEY" in err
    assert "sk-wrong" not in err
    assert "Traceback" not in err


async def test_a_script_gets_the_reason_for_a_delay(tmp_path: Path) -> None:
    script: list[Reply | Refusal] = [Refusal(status=429, retry_after_seconds=1), Reply(text="Rome.")]
    async with ModelServer(script) as server:
        told = await printed(environment(server, tmp_path, OPENAI_API_KEY="k"), "Where?")
    pause = "keryx: openai asks for a pause: its rate limit is reached. Trying again in 1 s.\n"
    assert told == ("Rome.\n", pause, 0)


async def test_a_missing_key_is_reported(server: ModelServer, tmp_path: Path) -> None:
    environ = environment(server, tmp_path, KERYX_MODEL="anthropic:claude")
    _, err, code = await printed(environ, "Where?")
    assert code == 1
    assert "there is no key for anthropic. Set ANTHROPIC_API_KEY" in err
    # The user's own server might need no key; this one does.
    _, err, _ = await printed(environment(server, tmp_path), "Where?")
    assert "there is no key for openai. Set OPENAI_API_KEY" in err


async def test_a_fallback_model_answers(tmp_path: Path) -> None:
    async with ModelServer([Refusal(status=401), Reply(text="Here.")]) as server:
        environ = environment(
            server,
            tmp_path,
            OPENAI_API_KEY="k",
            ANTHROPIC_API_KEY="k",
            ANTHROPIC_BASE_URL=server.url,
            KERYX_MODELS_FALLBACKS="anthropic:claude-scripted",
        )
        assert (await printed(environ, "Where?"))[0] == "Here.\n"


async def test_a_gateway_is_ready_before_a_provider_is_loaded_and_ends_on_sigterm(
    server: ModelServer, tmp_path: Path
) -> None:
    process = await start(environment(server, tmp_path, OPENAI_API_KEY="sk-right"), "serve")
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while b"keryx: ready" not in await process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    assert process.returncode == 0
