"""Wiring: from a configuration to a running system. The one place that knows concrete classes."""

import asyncio
import gc
import importlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from keryx import config
from keryx.agents.agent import Agent
from keryx.agents.calling import Access
from keryx.agents.guide import Guide
from keryx.agents.model import ModelAgent, ModelChoice
from keryx.agents.program import ProgramSettings
from keryx.clock import SystemClock
from keryx.config import Configuration
from keryx.errors import InvalidValue
from keryx.gateway.desk import Desk, endlessly
from keryx.gateway.lifeline import tied
from keryx.gateway.supervisor import Gateway
from keryx.ids import Ids
from keryx.library.indexing import Indexer
from keryx.platforms.adapter import Adapter
from keryx.processes.registry import Registry
from keryx.processes.watcher import WATCH_SECONDS, Watcher
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.tools.actions import action_tools
from keryx.tools.addresses import Reach
from keryx.tools.background import Background
from keryx.tools.fetch import FetchUrl
from keryx.tools.files import file_tools
from keryx.tools.finding import finding_tools
from keryx.tools.mcp import FIRST_SECONDS, McpServers
from keryx.tools.results import ReadResult
from keryx.tools.state import state_tools
from keryx.tools.terminal import Terminal
from keryx.tools.tool import Tool, Toolbox
from keryx.tools.watching import WatchProcess
from keryx.tools.workspace import Workspaces
from keryx.transactions.program_session import enter_store
from keryx.values import dataclass
from keryx.views.media import read_contents

INDEX_LOOK_SECONDS = 60.0
PROCESSES = "processes"
"""In the data folder: a folder for each background process that runs, or ended not long ago."""
ID_SALT = "id-salt"
"""A file of the profile's data folder."""
GUIDE = "the built-in guide (no model is set up)"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What a process works with: where, who answers, with which tools, through which accounts."""

    desk: Desk
    agent: Agent
    toolbox: Toolbox
    adapters: Sequence[Adapter]
    turns_max: int
    who: str
    """Who answers, as people are told."""
    warm_up: Callable[[], Awaitable[None]]
    """Loads what the first turn will need; worth calling once messages are taken in."""


async def _nothing() -> None:
    """Be ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Who answers, and with which tools; a program that brings its own agent gives this."""

    agent: Agent
    tools: Iterable[Tool] = ()
    who: str = "an agent of its own"
    warm_up: Callable[[], Awaitable[None]] = _nothing


@asynccontextmanager
async def open_system(
    configuration: Configuration, *, answering: Answering | None = None, is_for_one_turn: bool = False
) -> AsyncIterator[System]:
    """Open the store, make it where there is none; until the end, index what is said and watch what runs.

    Where it is opened for one turn, that waits for tools which otherwise a later one would have.
    """
    configuration.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = await asyncio.to_thread(open_database, configuration.database)
    try:
        await database.write(lambda tx: enter_store(tx, person_id=None))
        indexer = Indexer(database, configuration.database)
        indexing = asyncio.create_task(_note_changes(database, indexer))
        try:
            ids = Ids()
            adapters = make_adapters(configuration)
            servers = McpServers(
                configuration.mcp_servers,
                folder=configuration.data_dir / "mcp",
                first_seconds=None if is_for_one_turn else FIRST_SECONDS,
            )
            desk = Desk(
                database=database,
                settings=replace(configuration.settings, id_salt=id_salt_of(configuration, ids)),
                ids=ids,
                clock=SystemClock(),
                holder=f"{socket.gethostname()}-{os.getpid()}-{ids.token()[:8]}",
                platforms=frozenset({"local", *(adapter.platform for adapter in adapters)}),
                troubles=servers.troubles,
            )
            background = Registry(database, configuration.data_dir / PROCESSES, clock=desk.clock, ids=ids)
            answers = answering or _answering(
                configuration, desk, _tools(configuration, desk, background, adapters)
            )
            async with (
                aclosing(servers),
                tied(database, configuration.data_dir, desk.holder) as bury,
                _watching(desk, background),
            ):
                yield System(
                    desk=replace(
                        desk,
                        bury=bury,
                        settings=replace(desk.settings, answering=_who(configuration, answers)),
                    ),
                    agent=answers.agent,
                    toolbox=Toolbox(answers.tools, sources=[servers]),
                    adapters=adapters,
                    turns_max=configuration.turns_max,
                    who=answers.who,
                    warm_up=lambda: _warm_up(answers, servers),
                )
        finally:
            indexing.cancel()
            await asyncio.gather(indexing, return_exceptions=True)
            await indexer.stop()
    finally:
        await database.close()


@asynccontextmanager
async def _watching(desk: Desk, background: Registry) -> AsyncIterator[None]:
    """Record what background processes do for the length of a block."""
    watcher = Watcher(desk.database, background, clock=desk.clock)
    watching = asyncio.create_task(
        endlessly(desk, "background processes", watcher.run_once, seconds=WATCH_SECONDS)
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
    answering: Answering | None = None,
) -> None:
    """Run a gateway until the process is asked to end; then finish or hand back what runs."""
    async with open_system(configuration, answering=answering) as system:
        gateway = Gateway(
            system.desk, system.agent, system.toolbox, system.adapters, turns_max=system.turns_max
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


async def _warm_up(answers: "Answering", servers: McpServers) -> None:
    await asyncio.gather(answers.warm_up(), servers.ready())


def _answering(configuration: Configuration, desk: Desk, tools: list[Tool]) -> Answering:
    """Return who answers: a program the owner named, else the model agent, behind which stands the guide."""
    return _program(configuration, desk, tools) or _model(configuration, desk, tools)


def _who(configuration: Configuration, answers: Answering) -> config.Answering:
    """Return who answers, as ``/model`` tells it."""
    if not isinstance(answers.agent, ModelAgent):
        return config.Answering(default=answers.who, takes_models=False)
    return config.Answering(default=answers.who, by_platform=configuration.models.by_platform)


def _program(configuration: Configuration, desk: Desk, tools: list[Tool]) -> Answering | None:
    """Return the program that answers instead of a model, if one is named; its module is imported only then."""
    chosen = configuration.agent
    program = ProgramSettings(
        command=chosen.acp or chosen.command,
        folder=configuration.workspace or Path.cwd(),
        environment=chosen.environment,
    )
    if chosen.acp:
        steps = importlib.import_module("keryx.tools.acp_steps")
        reports = steps.Reports()
        agent = importlib.import_module("keryx.agents.acp").AcpAgent(
            program,
            errors=configuration.data_dir / "agent.log",
            reports=reports,
            read_media=lambda hashes: desk.database.read(lambda tx: read_contents(tx, hashes)),
        )
        return Answering(
            agent=agent, tools=steps.acp_tools(reports), who=f"{program.name} (ACP)", warm_up=agent.warm_up
        )
    if chosen.command:
        command_agent = importlib.import_module("keryx.agents.command").CommandAgent
        answering = command_agent(
            program,
            speaks=chosen.format,
            profile=configuration.profile,
            silence_seconds=chosen.timeout_seconds,
        )
        return Answering(agent=answering, tools=tools, who=program.name)
    return None


def _model(configuration: Configuration, desk: Desk, tools: list[Tool]) -> Answering:
    models = configuration.models
    agent = ModelAgent(
        ModelChoice(
            model=models.default,
            by_platform=models.by_platform,
            fallbacks=models.fallbacks,
            context_tokens=models.context_tokens,
            context_tokens_of=models.context_tokens_of,
        ),
        Access(variables=models.variables, timeout_seconds=models.timeout_seconds, prices=models.prices),
        otherwise=Guide(),
        clock=SystemClock(),
        read_media=lambda hashes: desk.database.read(lambda tx: read_contents(tx, hashes)),
    )
    return Answering(
        agent=agent,
        tools=tools,
        who=models.default or GUIDE,
        warm_up=agent.warm_up if models.default or models.by_platform else _nothing,
    )


def _tools(
    configuration: Configuration, desk: Desk, background: Background, adapters: Sequence[Adapter]
) -> list[Tool]:
    """Return the tools there are without any server of others."""
    settings, database = configuration.tools, desk.database
    workspaces = Workspaces(
        default=configuration.workspace or Path.cwd(),
        kept_out=(configuration.config_dir, configuration.data_dir),
    )
    return [
        *state_tools(database, troubles=desk.troubles),
        *action_tools(
            database,
            Ids(),
            zone=configuration.timezone,
            output_dir=configuration.output_dir,
            splitters={adapter.platform: adapter.split_chat for adapter in adapters},
        ),
        *file_tools(workspaces),
        *finding_tools(workspaces),
        Terminal(
            workspaces,
            environment=settings.environment,
            profile=configuration.profile,
            background=background,
        ),
        WatchProcess(database, background),
        FetchUrl(Reach(private=settings.fetch_private, allowed=frozenset(settings.fetch_allow))),
        ReadResult(database),
    ]


def make_adapters(configuration: Configuration) -> list[Adapter]:
    """Return the adapters of the platforms that are configured; each one's module is imported only then."""
    adapters: list[Adapter] = []
    webhook = configuration.webhook
    if webhook.enabled:
        if webhook.secret is None:
            raise InvalidValue(
                "webhook.enabled: the platform needs a secret; write KERYX_WEBHOOK_SECRET=whsec_… into "
                f"{configuration.config_dir / '.env'} (mode 0600)"
            )
        module = importlib.import_module("keryx.platforms.webhook.adapter")
        try:
            secrets = tuple(map(module.Secret.parse, webhook.secret.split()))
        except InvalidValue as error:
            raise InvalidValue(f"{configuration.origin_of('webhook.secret')}: {error}") from error
        settings = module.WebhookSettings(
            secrets=secrets,
            host=webhook.host,
            port=webhook.port,
            callback=webhook.callback,
        )
        adapters.append(module.WebhookAdapter(settings))
    return adapters


async def _note_changes(database: Database, indexer: Indexer) -> None:
    """Let the index follow every commit, of whichever loop."""
    while True:
        since = database.change_no
        indexer.note()
        await database.changed(since=since, timeout_seconds=INDEX_LOOK_SECONDS)
