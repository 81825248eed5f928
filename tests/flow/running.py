"""Run a gateway in a test: real loops on a real store, a fake platform, and an agent that the test defines."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from keryx.agents.agent import Agent, Answer, Brief, Stage
from keryx.clock import SystemClock
from keryx.config import Settings
from keryx.core.conversations.rules.message import NewMessage, TextPart, text_of
from keryx.core.people.tables import people
from keryx.gateway.gateway import Gateway
from keryx.gateway.runtime.runtime import ReleaseDeadNodes, Runtime, release_nothing
from keryx.ids import Ids
from keryx.platforms.adapter import Adapter
from keryx.store.database import Database, Tx
from keryx.testing.platform import FakePlatform
from keryx.tools.tool import Tool, Toolbox

PATIENCE_SECONDS = 20.0


def said(text: str) -> Answer:
    return Answer(message=NewMessage(role="assistant", parts=(TextPart(text=text),)))


def last_text(brief: Brief) -> str:
    """Return the text of the last message to the agent."""
    return text_of(brief.messages[-1].parts)  # type: ignore[union-attr]


@dataclass
class Actor:
    """An agent that answers with a function; without one it repeats the message."""

    act: Callable[[Brief, Stage], Awaitable[Answer]] | None = None
    briefs: list[Brief] = field(default_factory=list)

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        self.briefs.append(brief)
        if self.act is not None:
            return await self.act(brief, stage)
        return said(f"You said: {last_text(brief)}")

    async def close(self) -> None:
        pass


async def let_in(database: Database, platform: FakePlatform, *users: str) -> None:
    """Add people who may write: the first is the owner."""

    def meet(tx: Tx) -> None:
        for number, user in enumerate(users):
            person = (
                people.ensure_owner(tx) if number == 0 else people.add_person(tx, name=user, role="member")
            )
            tx.run(
                "people.add_identity",
                platform=platform.name,
                account=platform.account or "",
                user_id=user,
                person_id=person.id,
                name=user,
            )
            people.mark_welcomed(tx, person.id)

    await database.write(meet)


def running(
    database: Database,
    platform: FakePlatform,
    agent: Agent,
    *,
    tools: Sequence[Tool] = (),
    holder: str = "node-1",
    settings: Settings | None = None,
) -> AbstractAsyncContextManager[Gateway]:
    """Run a gateway on one platform."""
    return gateway_of(database, [platform.adapter()], agent, tools=tools, holder=holder, settings=settings)


@asynccontextmanager
async def gateway_of(
    database: Database,
    adapters: Sequence[Adapter],
    agent: Agent,
    *,
    tools: Sequence[Tool] = (),
    holder: str = "node-1",
    settings: Settings | None = None,
    release_dead_nodes: ReleaseDeadNodes = release_nothing,
) -> AsyncIterator[Gateway]:
    """Run a gateway; at the end it gets a second to finish its turns, and hands back the rest."""
    runtime = Runtime(
        database=database,
        settings=settings or Settings(),
        ids=Ids(),
        clock=SystemClock(),
        holder=holder,
        platforms=frozenset(adapter.platform for adapter in adapters),
        release_dead_nodes=release_dead_nodes,
    )
    gateway = Gateway(runtime, agent, Toolbox(tools), adapters)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop(seconds=1)


async def until(holds: Callable[[], bool], *, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until a condition holds; fail after a timeout."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - the conditions have no event
            await asyncio.sleep(0.01)
