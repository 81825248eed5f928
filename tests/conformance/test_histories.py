"""Random histories: people, gateways, crashes and clocks in any order; after every step the invariants hold.

A history follows from its seed alone, so a failing seed reproduces a bug.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from keryx.clock import DAY, HOUR, SECOND
from keryx.core.accounts.transactions import Connector, take_connector
from keryx.core.approvals import tables as approvals
from keryx.core.approvals.transactions.decide_approval import decide_approval, expire_approvals
from keryx.core.conversations.rules.message import NewMessage, text_message
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.delivery import Outcome, Rejected, Sent, Unknown
from keryx.core.deliveries.tables import outbox
from keryx.core.deliveries.transactions.claim_deliveries import claim_deliveries, record_delivery
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy
from keryx.core.turns.tables import turns
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.fail_turn import Failure, fail_turn, roll_back_turn, stop_turn
from keryx.core.turns.transactions.record_step import (
    ask_approval,
    record_calls,
    record_result,
    record_text,
    start_call,
)
from keryx.core.turns.transactions.renew_turn import renew_turn
from keryx.core.values.turn_states import STEP_EFFECTS
from keryx.errors import LeaseLost
from keryx.store.database import Database, Tx
from keryx.store.opening import open_database
from keryx.testing.builders import call_message, dm, group, result_message
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage

T = TypeVar("T")

MODES = ("", "", "", "!steer ", "!stop ", "!collect ", "!rollback ", "!queue ")
COMMANDS = ("/undo", "/redo", "/retry", "/new", "/resume", "/stop", "/fork", "/status", "/why", "/nonsense")
SOURCES: tuple[Source, ...] = (dm("ana"), dm("ben"), group("ana"), group("ben"), group("ana", thread="1"))
OUTCOMES: tuple[Outcome, ...] = (
    Sent(message_id="1"),
    Sent(message_id=None),
    Unknown(),
    Rejected(reason="busy", retry_after=SECOND),
    Rejected(reason="too long", permanent=True),
    Rejected(reason="gone", dead_address=True),
)


class History:
    """A history that is drawn from a seed."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self.name = f"of {seed}"
        self.draw = random.Random(seed)
        self.count = 0
        self.held: list[BegunTurn] = []
        self.sending: list[tuple[Connector, outbox.Delivery]] = []
        self.questions: list[int] = []
        self.steps: dict[Callable[[], Awaitable[object]], int] = {
            self.hear: 12,
            self.hear_again: 2,
            self.command: 3,
            self.begin: 10,
            self.call: 8,
            self.start: 5,
            self.give_result: 6,
            self.say: 3,
            self.ask: 2,
            self.answer: 3,
            self.renew: 3,
            self.finish: 8,
            self.fail: 3,
            self.stop: 2,
            self.roll_back: 2,
            self.wait: 6,
            self.crash: 2,
            self.recover: 4,
            self.claim: 4,
            self.settle: 5,
        }

    async def run(self, steps: int) -> None:
        """Play this number of steps."""
        for _ in range(steps):
            [step] = self.draw.choices(list(self.steps), weights=list(self.steps.values()))
            try:
                await step()
            except LeaseLost:
                # A late holder drops its work.
                await self.stage.check()

    async def hear(self) -> None:
        self.count += 1
        text = f"{self.draw.choice(MODES)}message {self.count} {self.name}"
        await self.stage.hear(text, source=self.draw.choice(SOURCES), ref=f"ref {self.count} {self.name}")

    async def hear_again(self) -> None:
        ref = f"ref {self.draw.randint(1, max(1, self.count))} {self.name}"
        if await self.stage.rows(f"SELECT 1 FROM inbox WHERE ref = '{ref}'"):
            await self.stage.hear("again", ref=ref)

    async def command(self) -> None:
        self.count += 1
        source = self.draw.choice(SOURCES)
        await self.stage.accept(
            self.draw.choice(COMMANDS), source=source, ref=f"ref {self.count} {self.name}"
        )

    async def begin(self) -> None:
        begun = await self.stage.begin_if_any(holder=self.draw.choice(("red", "blue")))
        if begun is not None:
            self.held.append(begun)

    async def call(self) -> None:
        begun = self._turn()
        if begun is None:
            return
        self.count += 1
        calls = [
            (f"call {self.count}.{number} {self.name}", self.draw.choice(STEP_EFFECTS))
            for number in range(self.draw.randint(0, 3))
        ]
        message = call_message(*calls, text=f"thought {self.count} {self.name}")
        seen = await self._steering(begun) if self.draw.random() < 0.5 else []
        await self._do(
            lambda tx: record_calls(tx, begun.held, message=message, seen=seen, ids=self.stage.ids)
        )

    async def start(self) -> None:
        begun, step = await self._step()
        if begun is not None and step is not None:
            await self._do(lambda tx: start_call(tx, begun.held, call_id=step.call_id))

    async def give_result(self) -> None:
        begun, step = await self._step()
        if begun is not None and step is not None:
            result = result_message(step.call_id)
            await self._do(lambda tx: record_result(tx, begun.held, result=result))

    async def say(self) -> None:
        begun = self._turn()
        if begun is not None:
            self.count += 1
            start, text = self.draw.randint(0, 3), f"so far {self.name} {self.count}"
            await self._do(lambda tx: record_text(tx, begun.held, start=start, text=text))

    async def ask(self) -> None:
        begun, step = await self._step()
        asked = await self.stage.rows("SELECT turn_id, call_id FROM approvals")
        if begun is None or step is None or (begun.turn_id, step.call_id) in asked:
            return
        approval_id = await self._do(
            lambda tx: ask_approval(tx, begun.held, call_id=step.call_id, question="?", ids=self.stage.ids)
        )
        self.questions.append(approval_id)

    async def answer(self) -> None:
        if self.questions:
            approval_id = self.draw.choice(self.questions)
            verdict = self.draw.choice(("approved", "denied"))
            record = await self.stage.look(lambda tx: approvals.get_approval(tx, approval_id))
            await self._do(
                lambda tx: decide_approval(tx, approval_id, verdict, person_id=record.person_id)  # type: ignore[arg-type]
            )

    async def renew(self) -> None:
        begun = self._turn()
        if begun is not None:
            await self._do(lambda tx: renew_turn(tx, begun.held))

    async def finish(self) -> None:
        begun = self._turn()
        if begun is not None:
            self.count += 1
            seen = await self._steering(begun) if self.draw.random() < 0.5 else []
            await self.stage.finish(begun, f"answer {self.count} {self.name}", seen=seen)

    async def fail(self) -> None:
        begun = self._turn()
        if begun is not None:
            retry_at = self.draw.choice((None, self.stage.clock.now() + 5 * SECOND))
            failure = Failure(reason="no", retry_at=retry_at)
            await self._do(
                lambda tx: fail_turn(
                    tx,
                    begun.held,
                    failure=failure,
                    partial=self._partial(),
                    ids=self.stage.ids,
                )
            )

    async def stop(self) -> None:
        begun = self._turn()
        if begun is not None:
            await self._do(lambda tx: stop_turn(tx, begun.held, partial=self._partial()))

    async def roll_back(self) -> None:
        begun = self._turn()
        if begun is not None:
            await self._do(lambda tx: roll_back_turn(tx, begun.held, ids=self.stage.ids))

    async def wait(self) -> None:
        self.stage.clock.advance(self.draw.choice((1, SECOND, 4 * SECOND, 10 * SECOND)))

    async def crash(self) -> None:
        self.stage.clock.advance(self.draw.choice((LEASE_TIME, LEASE_TIME, 2 * HOUR)))

    async def recover(self) -> None:
        await self.stage.recover()

    async def claim(self) -> None:
        holder = self.draw.choice(("red", "blue"))
        connector = await self._do(
            lambda tx: take_connector(tx, platform="telegram", account="", holder=holder)
        )
        if connector is not None:
            claimed = await self._do(lambda tx: claim_deliveries(tx, connector, limit=2))
            self.sending += [(connector, delivery) for delivery in claimed]

    async def settle(self) -> None:
        if self.sending:
            connector, delivery = self.draw.choice(self.sending)
            outcome = self.draw.choice(OUTCOMES)
            await self._do(
                lambda tx: record_delivery(tx, connector, delivery.id, outcome, deduplicates=False)
            )

    async def drain(self) -> None:
        """Let time pass and every turn end. Then every accepted item has one fate."""
        for _ in range(20):
            self.stage.clock.advance(DAY)
            await self.stage.recover()
            await self._do(lambda tx: expire_approvals(tx, ids=self.stage.ids))
            while (begun := await self.stage.begin_if_any()) is not None:
                self.count += 1
                await self.stage.finish(begun, f"answer {self.count} {self.name}")
        assert await self.stage.rows("SELECT id, kind, busy_mode FROM inbox WHERE fate IS NULL") == []
        for (session_id,) in await self.stage.rows("SELECT id FROM sessions"):
            texts = await self.stage.texts(session_id)
            assert len(texts) == len(set(texts)), texts

    def _turn(self) -> BegunTurn | None:
        """Return a turn whose lease may be lost; most often the newest."""
        if not self.held:
            return None
        return self.held[-1] if self.draw.random() < 0.8 else self.draw.choice(self.held)

    async def _step(self) -> tuple[BegunTurn | None, turns.Step | None]:
        begun = self._turn()
        if begun is None:
            return None, None
        steps = await self.stage.look(lambda tx: turns.list_steps(tx, begun.turn_id))
        return begun, self.draw.choice(steps) if steps else None

    async def _steering(self, begun: BegunTurn) -> list[int]:
        renewed = await self._do(lambda tx: renew_turn(tx, begun.held))
        return [item.id for item in renewed.steering]

    def _partial(self) -> NewMessage | None:
        self.count += 1
        return (
            text_message("assistant", f"partly {self.count} {self.name}")
            if self.draw.random() < 0.5
            else None
        )

    async def _do(self, work: Callable[[Tx], T]) -> T:
        return await self.stage.do(work)


async def stage_for(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    stage.set(reset=ResetPolicies(default=ResetPolicy(mode="idle", idle_minutes=60)))
    for user in ("ana", "ben"):
        await stage.meet(user)
    return stage


@pytest.mark.parametrize("seed", range(6))
async def test_the_invariants_hold_in_a_random_history(seed: int, tmp_path: Path, clock: FakeClock) -> None:
    database = open_database(tmp_path / "keryx.db", clock=clock)
    history = History(await stage_for(database, clock), seed)
    await history.run(200)
    await history.drain()
    await database.close()


async def test_the_invariants_hold_in_a_random_history_on_either_database(
    database: Database, clock: FakeClock
) -> None:
    history = History(await stage_for(database, clock), 100)
    await history.run(80)
    await history.drain()


async def test_the_invariants_hold_in_concurrent_histories(database: Database, clock: FakeClock) -> None:
    stage = await stage_for(database, clock)
    histories = [History(stage, seed) for seed in range(200, 204)]
    await asyncio.gather(*(history.run(30) for history in histories))
    await histories[0].drain()
