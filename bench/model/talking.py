"""Turns of a model through a gateway in this process, beside the provider's bare client that asks the very same.

The clock starts when the platform has the message, or when the bare client is called, and is read when a token is
handed on. Both ask in turn, so that a slow moment of the machine falls on both.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from openai import AsyncOpenAI

from bench.gateway.load import Place
from bench.model.provider import MODEL, TOOL, variables
from keryx.agents.agent import Agent, Answer, Brief, HistoryItem, ModelUse, Stage, StepDone
from keryx.agents.model.agent import ModelAgent
from keryx.agents.model.choice import ModelChoice
from keryx.agents.model.contract import Access
from keryx.agents.model.guide import Guide
from keryx.app import open_system
from keryx.clock import SECOND, SystemClock
from keryx.config_load import load_config
from keryx.core.context.rules.cover import Summary
from keryx.core.conversations.rules.message import NewMessage
from keryx.core.people.tables import people
from keryx.core.turns.rules.tool_offer import ToolOffer
from keryx.core.turns.tables import turns
from keryx.core.values.json_value import JsonValue
from keryx.gateway.gateway import Gateway
from keryx.live import Delta, Live
from keryx.platforms.adapter import Outgoing
from keryx.store.database import Database, Tx
from keryx.testing.model_server import ModelServer, Reply
from keryx.testing.platform import FakePlatform
from keryx.tools.keryx.plugin import keryx_tools
from keryx.tools.tool import Toolbox, ToolCall

USER = "ana"
PATIENCE_SECONDS = 60.0
SLOW_TOKENS = 10
"""How many tokens of a slow answer are heard before it is stopped."""
HANG_SECONDS = 0.3
"""How long a provider is left hanging before it is stopped: it tells nobody that it hangs."""


class Moment(NamedTuple):
    """A time on the clock, and of the processor."""

    at: float
    cpu: float

    @classmethod
    def now(cls) -> "Moment":
        return cls(time.perf_counter(), time.process_time())


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """When the tokens of an answer came."""

    began: float
    moments: list[Moment]

    @property
    def first(self) -> float:
        """Seconds to the first token."""
        return self.moments[0].at - self.began

    @property
    def per_token(self) -> float:
        """Seconds from one token to the next."""
        return (self.moments[-1].at - self.moments[0].at) / (len(self.moments) - 1)

    @property
    def cpu_per_token(self) -> float:
        """Seconds of this process's processor time from one token to the next: what is left on a busy machine."""
        return (self.moments[-1].cpu - self.moments[0].cpu) / (len(self.moments) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One question, asked through Keryx and of the bare client."""

    keryx: Heard
    bare: Heard
    before_agent: float
    """How much of Keryx's time passed before its agent was called."""


class Ear(Live):
    """Notes when tokens are handed on."""

    def __init__(self) -> None:
        super().__init__()
        self.moments: list[Moment] = []

    def publish(self, delta: Delta) -> None:
        """Note the time, and hand it on."""
        self.moments.append(Moment.now())
        super().publish(delta)


class Timed:
    """The agent, and when and about what it was called last."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.called = asyncio.Event()
        self.called_at = 0.0
        self.brief: Brief | None = None

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        self.called_at, self.brief = time.perf_counter(), brief
        self.called.set()
        return await self._agent.run(brief, stage)

    async def close(self) -> None:
        await self._agent.close()


class Errand:
    """A tool that never comes back by itself."""

    offer = ToolOffer(name=TOOL, description="An errand.", parameters={"type": "object"}, effect="once")

    def __init__(self) -> None:
        self.at_work = asyncio.Event()

    async def run(self, call: ToolCall) -> JsonValue:  # noqa: ARG002 - the same whatever it is used for
        self.at_work.set()
        await asyncio.Event().wait()
        return None

    def question(self, call: ToolCall) -> str:  # noqa: ARG002
        return "May I?"

    def pattern(self, call: ToolCall) -> str | None:  # noqa: ARG002
        return None


class Quiet:
    """A stage that nobody sits before."""

    async def say(self, text: str) -> None: ...

    async def think(self, text: str) -> None: ...

    async def pause(self, reason: str) -> None: ...

    async def show_call(self, text: str) -> None: ...

    async def note_model(self, asked: ModelUse) -> None: ...

    async def act(self, step: NewMessage) -> StepDone:
        raise AssertionError(f"nothing is called here: {step}")

    async def reread(self) -> Sequence[HistoryItem]:
        return ()

    async def pinned(self) -> frozenset[int]:
        return frozenset()

    async def cover(self, summary: Summary) -> bool:
        raise AssertionError(f"nothing is long here: {summary}")


class Talk:
    """A gateway at work on a platform of its own, and the bare client beside it."""

    def __init__(self, database: Database, agent: Agent, bare: AsyncOpenAI) -> None:
        self.database = database
        self.platform = FakePlatform()
        self.ear = Ear()
        self.agent = Timed(agent)
        self.errand = Errand()
        self._bare = bare
        self._sent = asyncio.Event()
        self.platform.before_send = self._note_sent

    def _note_sent(self, outgoing: Outgoing) -> None:  # noqa: ARG002 - that it is sent says all
        self._sent.set()

    async def compare(self, text: str, *, chat: str) -> Sample:
        """Ask through Keryx, and then the bare client what Keryx asked."""
        self.ear.moments.clear()
        self._sent.clear()
        began = time.perf_counter()
        self.platform.say(text, chat=chat)
        await self._sent.wait()
        keryx = Heard(began=began, moments=list(self.ear.moments))
        assert self.agent.brief is not None, "it was asked"
        bare = await self._ask_bare(await _request_of(self.agent.brief))
        return Sample(keryx=keryx, bare=bare, before_agent=self.agent.called_at - began)

    async def _ask_bare(self, request: dict[str, Any]) -> Heard:
        began = time.perf_counter()
        moments = [
            Moment.now()
            async for chunk in await self._bare.chat.completions.create(**request)
            if chunk.choices and chunk.choices[0].delta.content
        ]
        return Heard(began=began, moments=moments)

    async def stop(self, text: str, *, chat: str) -> float:
        """Ask for what does not end, stop it, and return the seconds from the accepted wish to the turn's end."""
        self.ear.moments.clear()
        for event in (self.agent.called, self.errand.at_work):
            event.clear()
        self.platform.say(text, chat=chat)
        await self.agent.called.wait()
        assert self.agent.brief is not None, "it was asked"
        turn_id = self.agent.brief.turn_id
        if text == "call":
            await self.errand.at_work.wait()
        elif text == "slow":
            while len(self.ear.moments) < SLOW_TOKENS:  # noqa: ASYNC110 - tokens ring no bell
                await asyncio.sleep(0.005)
        else:
            await asyncio.sleep(HANG_SECONDS)
        self.platform.say("/stop", chat=chat)
        while True:
            since = self.database.change_no
            turn = await self.database.read(lambda tx: turns.get_turn(tx, turn_id))
            if turn.ended_at is not None:
                assert turn.stop_requested_at is not None, "it did not end by itself"
                return (turn.ended_at - turn.stop_requested_at) / SECOND
            await self.database.changed(since=since, timeout_seconds=PATIENCE_SECONDS)


async def _request_of(brief: Brief) -> dict[str, Any]:
    """Return what the agent asks its provider in a turn."""
    async with ModelServer([Reply(text="Yes.")]) as server:
        agent = ModelAgent(
            ModelChoice(model=f"openai:{MODEL}"),
            Access(variables={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.openai_url}),
            otherwise=Guide(),
            clock=SystemClock(),
        )
        await agent.run(brief, Quiet())
        await agent.close()
    return dict(server.requests[0].body)


@asynccontextmanager
async def talking(place: Place, url: str) -> AsyncIterator[Talk]:
    """Run a gateway on the store there whose model is the scripted provider."""
    environ = {"KERYX_HOME": str(place.folder), "KERYX_DATABASE": place.database, **variables(url)}
    environ["KERYX_MODELS_TITLES"] = "false"  # the provider is asked for what is timed, and nothing else
    configuration = load_config(environ, cwd=place.folder)
    async with open_system(configuration) as system, AsyncOpenAI(base_url=url, api_key="k") as bare:
        talk = Talk(system.runtime.database, system.agent, bare)
        await talk.database.write(_let_in)
        runtime = replace(system.runtime, live=talk.ear)
        toolbox = Toolbox([*keryx_tools(talk.database), talk.errand])
        gateway = Gateway(runtime, talk.agent, toolbox, [talk.platform.adapter()])
        await gateway.start()
        try:
            yield talk
        finally:
            await gateway.stop(seconds=1)


def _let_in(tx: Tx) -> None:
    owner = people.ensure_owner(tx)
    tx.run("people.add_identity", platform="fake", account="", user_id=USER, person_id=owner.id, name=USER)
    people.mark_welcomed(tx, owner.id)
