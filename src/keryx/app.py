"""Wiring: from a configuration and its plug-ins to a running system. No plug-in is known here by its name."""

import asyncio
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace

from keryx.agents.agent import Agent
from keryx.agents.plugin import AgentContext, AgentPlugin, Answerer
from keryx.backends.plugin import BackendContext, BackendPlugin
from keryx.clock import SystemClock
from keryx.config import Configuration
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.transactions.program_sessions import enter_store
from keryx.core.media.views import read_contents
from keryx.core.processes.backend import ProcessBackend
from keryx.core.search.indexing.indexer import Indexer
from keryx.gateway.gateway import Gateway
from keryx.gateway.processes import WATCH_SECONDS, Watcher
from keryx.gateway.runtime.node_lock import node_lock
from keryx.gateway.runtime.runtime import Runtime, endlessly
from keryx.ids import Ids
from keryx.platforms.adapter import Adapter
from keryx.platforms.plugin import PlatformPlugin
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.tools.plugin import ToolContext, ToolPlugin
from keryx.tools.tool import Tool, Toolbox, ToolSource
from keryx.values import dataclass

INDEX_LOOK_SECONDS = 60.0
PROCESSES = "processes"
"""In the data folder: a folder for each background process that runs, or ended not long ago."""
ID_SALT = "id-salt"
"""A file of the profile's data folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What a process works with: where, who answers, with which tools, through which accounts."""

    runtime: Runtime
    agent: Agent
    toolbox: Toolbox
    adapters: Sequence[Adapter]
    turns_max: int
    who: str
    """Who answers, as people are told."""
    warm_up: Callable[[], Awaitable[None]]
    """Loads what the first turn will need; worth calling once messages are taken in."""


class _ToolSources:
    """The tools that come and go, of all plug-ins together."""

    def __init__(self) -> None:
        self.all: list[ToolSource] = []

    def troubles(self) -> Sequence[str]:
        """Return what keeps tools from working now."""
        return [trouble for source in self.all for trouble in source.troubles()]

    async def ready(self) -> None:
        """Return when it is worth asking for them."""
        await asyncio.gather(*(source.ready() for source in self.all))

    async def aclose(self) -> None:
        """Let go of everything that was started."""
        await asyncio.gather(*(source.aclose() for source in self.all))


@asynccontextmanager
async def open_system(
    configuration: Configuration, *, answering: Answerer | None = None, is_for_one_turn: bool = False
) -> AsyncIterator[System]:
    """Open the store, make it where there is none; until the end, index what is said and watch what runs.

    Where it is opened for one turn, that waits for tools which otherwise a later one would have.
    """
    configuration.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = await asyncio.to_thread(open_database, configuration.database)
    try:
        await database.write(lambda tx: enter_store(tx, person_id=None))
        async with _indexing(database, configuration.database):
            adapters = make_adapters(configuration)
            sources = _ToolSources()
            runtime = _make_desk(configuration, database, adapters, sources)
            backend = _make_backend(configuration, runtime)
            tools = _make_tools(
                ToolContext(
                    configuration=configuration,
                    database=database,
                    ids=runtime.ids,
                    background=backend,
                    splitters={adapter.platform: adapter.split_chat for adapter in adapters},
                    troubles=sources.troubles,
                    is_for_one_turn=is_for_one_turn,
                ),
                sources,
            )
            answerer = answering or _make_agent(configuration, runtime)
            async with (
                aclosing(sources),
                node_lock(database, configuration.data_dir, runtime.holder) as bury,
                _watching(runtime, backend),
            ):
                yield System(
                    runtime=replace(
                        runtime, bury=bury, settings=replace(runtime.settings, answering=answerer.who)
                    ),
                    agent=answerer.agent,
                    toolbox=Toolbox(tools if answerer.tools is None else answerer.tools, sources=sources.all),
                    adapters=adapters,
                    turns_max=configuration.turns_max,
                    who=answerer.who.default,
                    warm_up=lambda: _warm_up(answerer, sources),
                )
    finally:
        await database.close()


@asynccontextmanager
async def _indexing(database: Database, address: str) -> AsyncIterator[None]:
    """Let the index follow every commit for the length of a block."""
    indexer = Indexer(database, address)
    indexing = asyncio.create_task(_note_changes(database, indexer))
    try:
        yield
    finally:
        indexing.cancel()
        await asyncio.gather(indexing, return_exceptions=True)
        await indexer.stop()


@asynccontextmanager
async def _watching(runtime: Runtime, backend: ProcessBackend) -> AsyncIterator[None]:
    """Record what background processes do for the length of a block."""
    watcher = Watcher(runtime.database, backend, clock=runtime.clock)
    watching = asyncio.create_task(
        endlessly(runtime, "background processes", watcher.run_once, seconds=WATCH_SECONDS)
    )
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def serve(
    configuration: Configuration,
    *,
    ready: Callable[[System, Gateway], None],
    answering: Answerer | None = None,
) -> None:
    """Run a gateway until the process is asked to end; then finish or hand back what runs."""
    async with open_system(configuration, answering=answering) as system:
        gateway = Gateway(
            system.runtime, system.agent, system.toolbox, system.adapters, turns_max=system.turns_max
        )
        await gateway.start()
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError):  # where there are no signals, Ctrl-C raises
                loop.add_signal_handler(number, ended.set)
        ready(system, gateway)
        warming = asyncio.create_task(settle(system))
        waits = [asyncio.create_task(ended.wait()), asyncio.create_task(gateway.wait())]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (*waits, warming):
                task.cancel()
            await asyncio.gather(*waits, warming, return_exceptions=True)
            await gateway.stop()


async def settle(system: System) -> None:
    """Load what the first turn needs, and from then on look for garbage only in what comes later.

    What is loaded stays for good, and a look through all of it stops every conversation for some 30 ms.
    """
    await system.warm_up()
    gc.freeze()


def id_salt_of(configuration: Configuration, ids: Ids) -> str | None:
    """Return what stands for users' ids are made with, if they are: the owner's word, else one the profile keeps."""
    prompt = configuration.prompt
    if not prompt.hash_user_ids or prompt.id_salt is not None:
        return prompt.id_salt if prompt.hash_user_ids else None
    kept = configuration.data_dir / ID_SALT
    if not kept.exists():
        draft = configuration.data_dir / f"{ID_SALT}.{ids.token()}"
        draft.touch(mode=0o600)
        draft.write_text(ids.token(), encoding="ascii")
        with suppress(FileExistsError):  # another process of the profile was faster
            kept.hardlink_to(draft)
        draft.unlink()
    return kept.read_text(encoding="ascii")


async def _warm_up(answerer: Answerer, sources: _ToolSources) -> None:
    await asyncio.gather(answerer.warm_up(), sources.ready())


def make_adapters(configuration: Configuration) -> list[Adapter]:
    """Return the adapters of the platforms that are configured; raise ``InvalidValue`` for one that cannot start."""
    adapters: list[Adapter] = []
    for plugin in configuration.plugins.platforms.values():
        assert isinstance(plugin, PlatformPlugin)
        adapter = plugin.make(configuration)
        if adapter is not None:
            adapters.append(adapter)
    return adapters


def _make_desk(
    configuration: Configuration, database: Database, adapters: Sequence[Adapter], sources: _ToolSources
) -> Runtime:
    ids = Ids()
    return Runtime(
        database=database,
        settings=replace(configuration.settings, id_salt=id_salt_of(configuration, ids)),
        ids=ids,
        clock=SystemClock(),
        holder=f"{socket.gethostname()}-{os.getpid()}-{ids.token()[:8]}",
        platforms=frozenset({LOCAL_CLI.platform, *(adapter.platform for adapter in adapters)}),
        troubles=sources.troubles,
    )


def _make_agent(configuration: Configuration, runtime: Runtime) -> Answerer:
    plugin = configuration.plugins.agents[configuration.plugins.agent]
    assert isinstance(plugin, AgentPlugin)
    return plugin.make(
        AgentContext(
            configuration=configuration,
            clock=runtime.clock,
            read_media=lambda hashes: runtime.database.read(lambda tx: read_contents(tx, hashes)),
        )
    )


def _make_backend(configuration: Configuration, runtime: Runtime) -> ProcessBackend:
    plugin = configuration.plugins.backend
    assert isinstance(plugin, BackendPlugin)
    return plugin.make(
        BackendContext(
            configuration=configuration,
            database=runtime.database,
            folder=configuration.data_dir / PROCESSES,
            clock=runtime.clock,
            ids=runtime.ids,
        )
    )


def _make_tools(context: ToolContext, sources: _ToolSources) -> list[Tool]:
    """Return the tools that are always there; what makes others is added to ``sources``."""
    tools: list[Tool] = []
    for plugin in context.configuration.plugins.tools.values():
        assert isinstance(plugin, ToolPlugin)
        made = plugin.make(context)
        tools += made.tools
        if made.source is not None:
            sources.all.append(made.source)
    return tools


async def _note_changes(database: Database, indexer: Indexer) -> None:
    """Let the index follow every commit, of whichever loop."""
    while True:
        since = database.change_no
        indexer.note()
        await database.changed(since=since, timeout_seconds=INDEX_LOOK_SECONDS)
