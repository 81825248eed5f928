"""What the guide finds on this machine, and the one command that sets a model up."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic_ai.models import known_model_names

from keryx.agents.model.local_servers import LocalServer
from keryx.agents.model.setup_hints import KEYS, PROBE_SECONDS, SUGGESTED, SetupHints, find_models, keys_in
from keryx.config_load import load_config
from keryx.testing.model_server import ModelServer
from tests.architecture.source import ROOT

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


def hints(port: int, *keys: str, command: str = "keryx") -> SetupHints:
    return SetupHints(command=command, keys=keys, servers={"ollama": LocalServer(title="Ollama", port=port)})


async def test_a_key_is_named_and_its_provider_s_model_suggested() -> None:
    keys = keys_in({"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b", "HOME": "/", "XAI_API_KEY": ""})
    found = await find_models(SetupHints(keys=keys))
    assert found.words == "I found OPENAI_API_KEY and ANTHROPIC_API_KEY."
    assert found.command == "keryx config set model openai:gpt-5"


async def test_a_provider_without_a_suggestion_is_named_all_the_same() -> None:
    found = await find_models(SetupHints(keys=("GROQ_API_KEY",)))
    assert found.command == "keryx config set model groq:NAME"


def test_every_suggested_model_is_known() -> None:
    assert set(SUGGESTED.values()) <= set(known_model_names())
    assert set(SUGGESTED) <= set(KEYS.values())


async def test_a_local_server_is_found_with_its_models() -> None:
    async with ModelServer(models=["llama3.2:3b", "qwen3"]) as server:
        found = await find_models(hints(server.port, command="scripts/keryx"))
    assert found.words == (
        f"I found a model server on the port of Ollama ({server.port}), with llama3.2:3b and 1 more."
    )
    assert found.command == "scripts/keryx config set model ollama:llama3.2:3b"


async def test_a_server_without_a_model_is_named_but_not_suggested() -> None:
    async with ModelServer() as server:
        found = await find_models(hints(server.port))
    assert found.words.endswith("without a model.")
    assert found.command == "keryx offline install && keryx config set model offline"


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\n\r\n[1]",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n" + b'{"data": [{}]}',
    ],
)
async def test_any_other_program_on_the_port_is_no_model_server(reply: bytes) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        found = await find_models(hints(server.sockets[0].getsockname()[1]))
    assert found.words.startswith("I found no provider's key in the environment, and no model server")


async def test_a_silent_program_is_waited_for_only_a_moment() -> None:
    held: list[asyncio.StreamWriter] = []

    async def listen(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with server:
        async with asyncio.timeout(PROBE_SECONDS + 5):
            found = await find_models(hints(server.sockets[0].getsockname()[1]))
        for writer in held:
            writer.close()
    assert found.words.startswith("I found no")


def test_the_command_is_the_one_that_started_keryx(tmp_path: Path) -> None:
    environ = {"KERYX_HOME": str(tmp_path)}
    assert load_config(environ, tmp_path).command == "keryx"
    assert load_config({**environ, "KERYX_COMMAND": "scripts/keryx"}, tmp_path).command == "scripts/keryx"


async def test_a_path_with_a_space_is_quoted() -> None:
    found = await find_models(SetupHints(command="/my code/keryx", keys=("OPENAI_API_KEY",)))
    assert found.command == "'/my code/keryx' config set model openai:gpt-5"


def test_the_script_of_a_checkout_says_how_it_was_started() -> None:
    assert "KERYX_COMMAND=$0 exec" in (ROOT / "scripts" / "keryx").read_text(encoding="utf-8")
