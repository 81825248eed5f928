"""Build a running system from a configuration and its plug-ins. No plug-in is known here by its name."""

import asyncio
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from keryx.agents.agent import Agent
from keryx.agents.plugin import AgentContext, AgentPlugin, Answerer
from keryx.backends.plugin import BackendContext, BackendPlugin
from keryx.clock import SystemClock
from keryx.config import Configuration
from keryx.core.context.settings import HASH_USER_IDS, ID_SALT
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.transactions.program_sessions import enter_store
from keryx.core.media.views import read_contents
from keryx.core.processes.backend import ProcessBackend
from keryx.core.search.indexing.indexer import Indexer
from keryx.gateway.gateway import Gateway
from keryx.gateway.processes import WATCH_SECONDS, ProcessWatcher
from keryx.gateway.runtime.node_lock import node_lock
from keryx.gateway.runtime.runtime import Runtime, cancel, repeat_forever
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
"""The subfolder of the data folder for background processes: one folder for each."""
SALT_FILE = "id-salt"
"""The file in the data folder with the profile's own salt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The parts of a running process: its runtime, agent, tools and adapters."""

    runtime: Runtime
    agent: Agent
    toolbox: Toolbox
    adapters: Sequence[Adapter]
    turns_max: int
    agent_name: str
    warm_up: Callable[[], Awaitable[None]]
    """Loads what the first turn needs. Call it after the adapters are connected."""


@asynccontextmanager
async def open_system(
    configuration: Configuration, *, answering: Answerer | None = None, is_for_one_turn: bool = False
) -> AsyncIterator[System]:
    """Open the store, or create it. During the block, index commits and watch background processes.

    ``answering`` replaces the configured agent. A system for one turn waits until its tools are available.
    """
    configuration.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        database = await asyncio.to_thread(
            open_database, configuration.database, marker_folder=configuration.data_dir
        )
        stack.push_async_callback(database.close)
        await database.write(lambda tx: enter_store(tx, person_id=None))
        indexer = Indexer(database, configuration.database)
        stack.push_async_callback(indexer.stop)
        await stack.enter_async_context(_background(_index_commits(database, indexer)))
        adapters = make_adapters(configuration)
        sources: list[ToolSource] = []

        def troubles() -> Sequence[str]:
            return [trouble for source in sources for trouble in source.troubles()]

        runtime = _make_runtime(configuration, database, adapters, troubles)
        backend = _make_backend(configuration, runtime)
        tools = _make_tools(
            ToolContext(
                configuration=configuration,
                database=database,
                ids=runtime.ids,
                background=backend,
                splitters={adapter.platform: adapter.split_chat for adapter in adapters},
                troubles=troubles,
                is_for_one_turn=is_for_one_turn,
            ),
            sources,
        )
        answerer = answering or _make_agent(configuration, runtime)
        for source in sources:
            stack.push_async_callback(source.aclose)
        release_dead_nodes = await stack.enter_async_context(
            node_lock(database, configuration.data_dir, runtime.holder)
        )
        watcher = ProcessWatcher(database, backend, clock=runtime.clock)
        watching = repeat_forever(runtime, "background processes", watcher.run_once, seconds=WATCH_SECONDS)
        await stack.enter_async_context(_background(watching))
        yield System(
            runtime=replace(
                runtime,
                release_dead_nodes=release_dead_nodes,
                settings=replace(runtime.settings, answering=answerer.who),
            ),
            agent=answerer.agent,
            toolbox=Toolbox(tools if answerer.tools is None else answerer.tools, sources=sources),
            adapters=adapters,
            turns_max=configuration.turns_max,
            agent_name=answerer.who.default,
            warm_up=lambda: _warm_up(answerer, sources),
        )


@asynccontextmanager
async def _background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run ``work`` as a task during the block, and cancel it at the end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        await cancel(task)


async def serve(
    configuration: Configuration,
    *,
    ready: Callable[[System, Gateway], None],
    answering: Answerer | None = None,
) -> None:
    """Run a gateway until SIGTERM or SIGINT; then finish the running turns, or hand them back."""
    async with open_system(configuration, answering=answering) as system:
        gateway = Gateway(
            system.runtime, system.agent, system.toolbox, system.adapters, turns_max=system.turns_max
        )
        await gateway.start()
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError):  # on a system without signal handlers, Ctrl-C raises
                loop.add_signal_handler(number, ended.set)
        ready(system, gateway)
        waits = [asyncio.create_task(ended.wait()), asyncio.create_task(gateway.wait())]
        try:
            async with _background(finish_start(system)):
                done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await cancel(*waits)
            await gateway.stop()


async def finish_start(system: System) -> None:
    """Load what the first turn needs, then exclude all loaded objects from garbage collection.

    They stay for good, and a collection of all of them would pause every conversation for about 30 ms.
    """
    await system.warm_up()
    gc.freeze()


def _id_salt(configuration: Configuration, ids: Ids) -> str | None:
    """Return the salt for hashing user ids: the configured one, or else the profile's. None if ids are not hashed."""
    values = configuration.values
    if not values.of(HASH_USER_IDS):
        return None
    configured = values.of(ID_SALT)
    if configured is not None:
        return configured
    path = configuration.data_dir / SALT_FILE
    if not path.exists():
        draft = configuration.data_dir / f"{SALT_FILE}.{ids.token()}"
        draft.touch(mode=0o600)
        draft.write_text(ids.token(), encoding="ascii")
        with suppress(FileExistsError):  # another process of the profile was faster
            path.hardlink_to(draft)
        draft.unlink()
    return path.read_text(encoding="ascii")


async def _warm_up(answerer: Answerer, sources: Sequence[ToolSource]) -> None:
    warm_up = [] if answerer.warm_up is None else [answerer.warm_up()]
    await asyncio.gather(*warm_up, *(source.ready() for source in sources))


def make_adapters(configuration: Configuration) -> list[Adapter]:
    """Return the adapters of the configured platforms; raise ``InvalidValue`` for one that cannot start."""
    adapters: list[Adapter] = []
    for plugin in configuration.plugins.platforms.values():
        assert isinstance(plugin, PlatformPlugin)
        adapter = plugin.make(configuration)
        if adapter is not None:
            adapters.append(adapter)
    return adapters


def _make_runtime(
    configuration: Configuration,
    database: Database,
    adapters: Sequence[Adapter],
    troubles: Callable[[], Sequence[str]],
) -> Runtime:
    ids = Ids()
    return Runtime(
        database=database,
        settings=replace(configuration.settings, id_salt=_id_salt(configuration, ids)),
        ids=ids,
        clock=SystemClock(),
        holder=f"{socket.gethostname()}-{os.getpid()}-{ids.token()[:8]}",
        platforms=frozenset({LOCAL_CLI.platform, *(adapter.platform for adapter in adapters)}),
        troubles=troubles,
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


def _make_tools(context: ToolContext, sources: list[ToolSource]) -> list[Tool]:
    """Return the fixed tools, and add the tool sources of the plug-ins to ``sources``."""
    tools: list[Tool] = []
    for plugin in context.configuration.plugins.tools.values():
        assert isinstance(plugin, ToolPlugin)
        made = plugin.make(context)
        tools += made.tools
        if made.source is not None:
            sources.append(made.source)
    return tools


async def _index_commits(database: Database, indexer: Indexer) -> None:
    """Tell the indexer about every commit."""
    while True:
        since = database.change_no
        indexer.note()
        await database.changed(since=since, timeout_seconds=INDEX_LOOK_SECONDS)
