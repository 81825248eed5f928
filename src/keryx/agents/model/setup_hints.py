"""Find what could answer on this machine, and name the one command that sets a model up.

Looking for local servers waits at most ``PROBE_SECONDS`` and never blocks the event loop.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json import loads
from shlex import quote
from typing import Final

from keryx.agents.model.local_servers import LOCAL_SERVERS, LocalServer
from keryx.core.values.graphemes import one_line
from keryx.core.values.model_name import PROVIDERS

PROBE_SECONDS: Final = 0.5
REPLY_BYTES_MAX: Final = 1_000_000
NAME_LENGTH_MAX: Final = 80

SUGGESTED: Final = {
    "openai": "openai:gpt-5",
    "anthropic": "anthropic:claude-opus-4-5",
    "google": "google:gemini-2.5-flash",
    "deepseek": "deepseek:deepseek-chat",
    "moonshotai": "moonshotai:kimi-latest",
    "zai": "zai:glm-4.6",
}
"""A model of each provider to begin with."""
KEYS: Final = {f"{name.upper().replace('-', '_')}_API_KEY": name for name in PROVIDERS} | {
    "GEMINI_API_KEY": "google"
}
"""The providers by the variables of their keys."""

NOTHING: Final = (
    "I found no provider's key in the environment, and no model server on its usual port ({servers}). A small model "
    "(127 MB) needs neither."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupHints:
    """What the guide may look at, and how Keryx was started."""

    command: str = "keryx"
    keys: Sequence[str] = ()
    """The variables of providers' keys that are set."""
    servers: Mapping[str, LocalServer] = field(default_factory=dict)
    """The local servers to look for, by the provider in the names of their models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsFound:
    """What was found, in words, and the command that sets up a model."""

    words: str
    command: str


def keys_in(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of providers' keys among the variables, best known provider first."""
    return tuple(name for name in KEYS if variables.get(name))


async def find_models(hints: SetupHints) -> ModelsFound:
    """Return what could answer here: a provider whose key is set, else a local server, else the offline model."""
    listed = await asyncio.gather(*(_models_on(each.port) for each in hints.servers.values()))
    running = {
        provider: models for provider, models in zip(hints.servers, listed, strict=True) if models is not None
    }
    words = [_told_keys(hints.keys)] if hints.keys else []
    words += [_told_server(hints.servers[provider], models) for provider, models in running.items()]
    model = _model(hints.keys, running)
    titles = ", ".join(each.title for each in (hints.servers or LOCAL_SERVERS).values())
    return ModelsFound(
        words=" ".join(words) or NOTHING.format(servers=titles),
        command=_command(quote(hints.command), model),
    )


def _model(keys: Sequence[str], running: Mapping[str, Sequence[str]]) -> str | None:
    if keys:
        provider = KEYS[keys[0]]
        return SUGGESTED.get(provider, f"{provider}:NAME")
    return next((f"{provider}:{models[0]}" for provider, models in running.items() if models), None)


def _command(keryx: str, model: str | None) -> str:
    if model is None:
        return f"{keryx} offline install && {keryx} config set model offline"
    return f"{keryx} config set model {quote(model)}"


def _told_keys(keys: Sequence[str]) -> str:
    return f"I found {' and '.join(keys)}."


def _told_server(server: LocalServer, models: Sequence[str]) -> str:
    others = f" and {len(models) - 1} more" if len(models) > 1 else ""
    what = f"with {models[0]}{others}" if models else "without a model"
    return f"I found a model server on the port of {server.title} ({server.port}), {what}."


async def _models_on(port: int) -> list[str] | None:
    """Return the models that a server on this port lists; None if there is no model server."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            body = await _get(port, "/v1/models")
        listed = loads(body)["data"] or []
        names = [one_line(str(each["id"]), NAME_LENGTH_MAX) for each in listed]
    except (OSError, EOFError, ValueError, LookupError, TypeError, RecursionError, TimeoutError):
        return None
    return names


async def _get(port: int, path: str) -> bytes:
    """Return the body of an answer. A library for HTTP would take a tenth of a second to load."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=REPLY_BYTES_MAX)
    try:
        # HTTP/1.0, so that the answer is sent whole and the connection closed behind it.
        writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost:{port}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise LookupError(path)
        _, has_length, rest = head.partition(b"content-length:")
        length = int(rest.partition(b"\r\n")[0]) if has_length else REPLY_BYTES_MAX
        if length > REPLY_BYTES_MAX:
            raise ValueError(length)
        return await reader.readexactly(length) if has_length else await reader.read(length)
    finally:
        writer.transport.abort()
