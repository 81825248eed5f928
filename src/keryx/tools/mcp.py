"""The tools of MCP servers: offered under ``server__tool`` while the owner's configuration names the server.

A server is started when the first turn needs tools, by a task of its own, and again when it ends. What it listed last
is kept in a file, so that its tools are there from the first turn on, and only a call waits for the server. What its
tools do is what the owner says; else a person is asked each time, unless the server says that it only reads.
"""

import asyncio
import hashlib
import importlib
import json
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from keryx.agents.agent import ToolOffer
from keryx.config import McpServerSettings
from keryx.domain.graphemes import cut, one_line
from keryx.domain.json_value import JsonValue
from keryx.domain.turn import StepEffect
from keryx.tools.mcp_words import Gone, Listed, Refused, Silent
from keryx.tools.tool import Tool, ToolFailed, Use

NAME_MAX: Final = 64
"""The longest name of a tool that every provider takes."""
DESCRIPTION_MAX: Final = 4_000
OUTPUT_MAX: Final = 5_000_000
"""How many characters of a result are kept; those that are too many to be shown at once are kept beside it."""
SHOWN_MAX: Final = 300
START_SECONDS: Final = 30.0
"""How long a server may take to start and list its tools, and a call may wait for that."""
FIRST_SECONDS: Final = 5.0
"""How long a turn waits for servers of which no list was ever seen, where others follow that will have it."""
CANCEL_SECONDS: Final = 5.0
PAUSE_FIRST_SECONDS: Final = 1.0
PAUSE_MAX_SECONDS: Final = 60.0
AWAY: Final = "The server {name!r} cannot be reached now; it is tried again. Try later, or do without it."
TROUBLE: Final = "The MCP server {name!r} does not work: {why}"
UNKNOWN: Final = "The server {name!r} ended during the call: it is unknown whether it was done."

_log = logging.getLogger("keryx.tools.mcp")
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")


class McpServers:
    """All servers of a configuration."""

    def __init__(
        self,
        servers: Iterable[McpServerSettings],
        *,
        folder: Path,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        start_seconds: float = START_SECONDS,
        first_seconds: float | None = FIRST_SECONDS,
    ) -> None:
        """Know the servers; ``folder`` is where their lists and complaints are kept.

        ``first_seconds`` is how long the first turn waits for lists that were never seen; None for as long as it takes
        until each server has listed its tools or failed.
        """
        self._first_seconds = first_seconds
        self._servers = [
            _Server(each, folder=folder, sleep=sleep, start_seconds=start_seconds) for each in servers
        ]

    def tools(self) -> Sequence[Tool]:
        """Return the tools that are known now."""
        return [tool for server in self._servers for tool in server.tools.values()]

    def troubles(self) -> Sequence[str]:
        """Return what keeps servers from working now, a sentence each, for the owner: it quotes what they wrote."""
        return [
            TROUBLE.format(name=server.settings.name, why=server.trouble)
            for server in self._servers
            if server.trouble is not None
        ]

    async def ready(self) -> None:
        """Start the servers, and wait a moment for those of which no list was ever seen."""
        for server in self._servers:
            server.start()
        unseen = [server.listed.wait() for server in self._servers if not server.listed.is_set()]
        if unseen:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._first_seconds):
                    await asyncio.gather(*unseen)
            for server in self._servers:
                # Waited for once: no other turn is held up.
                server.listed.set()

    async def aclose(self) -> None:
        """End the servers."""
        await asyncio.gather(*(server.close() for server in self._servers))


class _Server:
    """One server: the task that keeps it connected, and what it listed last."""

    def __init__(
        self,
        settings: McpServerSettings,
        *,
        folder: Path,
        sleep: Callable[[float], Awaitable[None]],
        start_seconds: float,
    ) -> None:
        self.settings = settings
        self._start_seconds = start_seconds
        self._sleep = sleep
        self._errors = folder / f"{settings.name}.log"
        self._kept = folder / f"{settings.name}.json"
        self._task: asyncio.Task[None] | None = None
        self._is_ending = False
        self._link: Any = None
        self._is_up = asyncio.Event()
        self._has_changed = asyncio.Event()
        self.listed = asyncio.Event()
        """Set when a list is known, or was waited for long enough, or will not come soon."""
        self.trouble: str | None = None
        """Why it does not work; None while it does, or may."""
        self.tools: Mapping[str, McpTool] = {}
        self._offer(_read_list(self._kept, settings))

    def start(self) -> None:
        """Begin to keep it connected, unless that is done."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep(), name=f"keryx-mcp-{self.settings.name}")

    async def close(self) -> None:
        """End it."""
        self._is_ending = True
        while self._task is not None and not self._task.done():
            # More than once: the package may raise what went wrong instead of that it was cancelled.
            self._task.cancel()
            await asyncio.wait([self._task], timeout=CANCEL_SECONDS)

    async def call(self, tool: str, arguments: Mapping[str, JsonValue], *, effect: StepEffect) -> JsonValue:
        """Call a tool, when the server is up; again if it ended during a call that may be repeated."""
        for is_last in (False, True):
            link = await self._up()
            try:
                given: JsonValue = await link.call(tool, dict(arguments))
            except Gone:
                link.gone.set()
                if is_last or effect not in ("pure", "idempotent"):
                    raise ToolFailed(UNKNOWN.format(name=self.settings.name)) from None
            else:
                return given
        raise AssertionError

    async def _up(self) -> Any:
        self.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._start_seconds):
                while not self._is_up.is_set() or self._link is None or self._link.gone.is_set():
                    self._is_up.clear()
                    await self._is_up.wait()
                return self._link
        raise ToolFailed(AWAY.format(name=self.settings.name))

    async def _keep(self) -> None:
        """Connect, and again whenever that ends, after pauses that grow while it does not work."""
        pause = PAUSE_FIRST_SECONDS
        while not self._is_ending:
            was_up = False
            written = await asyncio.to_thread(_size_of, self._errors)
            try:
                was_up = await self._serve()
            except Exception as error:  # noqa: BLE001 - whatever a foreign program does, it is tried again
                name, kind = self.settings.name, _kind_of(error)
                _log.warning("the MCP server %s failed: %s; mcp/%s.log may say more", name, kind, name)
                line = await asyncio.to_thread(_last_line, self._errors, since=written)
                self.trouble = _in_words(error, line, seconds=self._start_seconds)
                self.listed.set()
            finally:
                self._link = None
                self._is_up.clear()
            pause = PAUSE_FIRST_SECONDS if was_up else min(2 * pause, PAUSE_MAX_SECONDS)
            await self._sleep(pause)

    async def _serve(self) -> bool:
        """Be connected until the server is gone; say whether it ever was up."""
        module = await asyncio.to_thread(importlib.import_module, "keryx.tools.mcp_link")
        async with (
            asyncio.timeout(self._start_seconds) as until_up,
            module.connected(self.settings, errors=self._errors, changed=self._has_changed.set) as link,
        ):
            await self._list(link)
            until_up.reschedule(None)
            self._link = link
            self.trouble = None
            self._is_up.set()
            _log.info("the MCP server %s is up with %s tools", self.settings.name, len(self.tools))
            while not link.gone.is_set():
                await _either(link.gone, self._has_changed)
                if self._has_changed.is_set() and not link.gone.is_set():
                    await self._list(link)
        _log.info("the MCP server %s has ended; it is started again", self.settings.name)
        return True

    async def _list(self, link: Any) -> None:
        self._has_changed.clear()
        listed: list[Listed] = await link.list_tools()
        await asyncio.to_thread(_write_list, self._kept, self.settings, listed)
        self._offer(listed)

    def _offer(self, listed: Sequence[Listed] | None) -> None:
        if listed is not None:
            made = [McpTool(self, each) for each in listed]
            self.tools = {tool.offer.name: tool for tool in made}
            self.listed.set()


class McpTool:
    """One tool of a server."""

    def __init__(self, server: _Server, listed: Listed) -> None:
        self._server = server
        self._tool = listed.name
        settings = server.settings
        self.offer = ToolOffer(
            name=offered_name(settings.name, listed.name),
            description=cut(listed.description or f"{listed.name} of {settings.name}", DESCRIPTION_MAX),
            parameters=dict(listed.schema),
            effect=effect_of(settings, listed),
            toolset=settings.toolset or f"mcp-{settings.name}",
            is_foreign=True,
        )

    async def run(self, use: Use) -> JsonValue:
        """Call it and return what it gave, or raise ``ToolFailed``."""
        name = self._server.settings.name
        try:
            given = await self._server.call(self._tool, use.arguments, effect=self.offer.effect)
        except Refused as refusal:
            raise ToolFailed(str(_limited(str(refusal)))) from None
        except Silent as silence:
            raise ToolFailed(
                f"The server {name!r} did not answer within {silence} s: it is unknown whether it was done."
            ) from None
        return _limited(given)

    def pattern(self, use: Use) -> str | None:  # noqa: ARG002 - nobody but its server knows what it does
        """Return None: a lasting yes covers every use."""
        return None

    def question(self, use: Use) -> str:
        """Return what a person is asked before it is called."""
        given = one_line(json.dumps(dict(use.arguments), ensure_ascii=False), SHOWN_MAX)
        server = self._server.settings.name
        return f"May I use {self._tool!r} of the MCP server {server!r}? It is given: {given}"


def offered_name(server: str, tool: str) -> str:
    """Return a name that every provider takes; one that had to be changed ends with a hash, so that none meet."""
    whole = f"{server}__{tool}"
    plain = _FOREIGN.sub("_", whole)
    if plain == whole and len(whole) <= NAME_MAX:
        return whole
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain[: NAME_MAX - 9]}_{digest}"


def effect_of(settings: McpServerSettings, tool: Listed) -> StepEffect:
    """Return what a tool does: as the owner says, else a person is asked unless it only reads."""
    said = settings.effects.get(tool.name)
    if said is not None:
        return said
    # That a call may be repeated says nothing of whether it may be made: deleting twice is no worse than once.
    return "pure" if tool.only_reads else "ask"


def _limited(given: JsonValue) -> JsonValue:
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    if len(text) <= OUTPUT_MAX:
        return given
    return f"{text[:OUTPUT_MAX]}\n[cut here: {len(text)} characters in all, of which {OUTPUT_MAX} are kept]"


def _identity(settings: McpServerSettings) -> str:
    """Return what tells a server from another of the same name; a list of another is not used."""
    said = json.dumps([settings.command, settings.url])
    return hashlib.sha256(said.encode()).hexdigest()


def _read_list(path: Path, settings: McpServerSettings) -> list[Listed] | None:
    """Return what the server listed when it was last seen; None where that is not known."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["server"] != _identity(settings):
            return None
        return [Listed(**each) for each in kept["tools"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_list(path: Path, settings: McpServerSettings, listed: Sequence[Listed]) -> None:
    """Keep what the server listed; that it cannot be kept is no reason not to use it."""
    kept = {"server": _identity(settings), "tools": [asdict(each) for each in listed]}
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(kept), encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        _log.warning("the tools of the MCP server %s cannot be kept: %s", settings.name, error.strerror)


def _first(error: BaseException) -> BaseException:
    """Return the first of several errors that came together."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _kind_of(error: BaseException) -> str:
    """Return what kind of error it is, without its words."""
    return type(_first(error)).__name__


def _in_words(error: BaseException, line: str, *, seconds: float) -> str:
    """Return why a server does not work: its own last line, where it ended by itself and wrote one."""
    match _first(error):
        case TimeoutError():
            return f"it did not list its tools within {seconds:g} s."
        case _ if line:
            return line
        case OSError(strerror=str(reason)):
            return f"{reason}."
        case _:
            return f"it ended, or did not answer as such a server does ({_kind_of(error)})."


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _last_line(path: Path, *, since: int) -> str:
    """Return the last line that was added to a file, as far as it can be shown; empty where there is none."""
    size = _size_of(path)
    if not size:
        return ""
    with path.open("rb") as file:
        # A file that is shorter than before was begun anew.
        file.seek(max(since if since <= size else 0, size - 4 * SHOWN_MAX))
        lines = file.read().decode("utf-8", "replace").split("\n")
    shown = ["".join(char if char.isprintable() else " " for char in line) for line in lines]
    return one_line(next((line for line in reversed(shown) if line.strip()), ""), SHOWN_MAX)


async def _either(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
