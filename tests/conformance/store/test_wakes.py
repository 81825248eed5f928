"""Which commits wake which loop. Every step of a ``Stage`` checks that no work stays unnoticed."""

from collections.abc import Callable
from typing import TypeVar

from keryx.commands.table import COMMANDS
from keryx.core.accounts.transactions import take_connector
from keryx.core.conversations.rules.message import text_message
from keryx.core.deliveries.rules.delivery import Sent
from keryx.core.deliveries.transactions.claim_deliveries import claim_deliveries, record_delivery
from keryx.core.turns.transactions.accept_message import accept_message
from keryx.core.turns.transactions.begin_turn import BegunTurn, begin_turn
from keryx.core.turns.transactions.finish_turn import Reply, finish_turn
from keryx.store.database import Database, Tx, noting
from keryx.store.statements import Topic
from keryx.testing.builders import dm, inbound
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage

T = TypeVar("T")


async def test_a_commit_wakes_only_the_loops_that_may_have_work(database: Database, clock: FakeClock) -> None:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    connector = await stage.do(lambda tx: take_connector(tx, platform="telegram", account="", holder="one"))
    assert connector is not None
    steps: list[tuple[str, set[Topic]]] = []

    async def step(name: str, work: Callable[[Tx], T]) -> T:
        wakes: set[Topic] = set()
        outcome = await database.write(noting(work, wakes))
        steps.append((name, wakes))
        return outcome

    async def say(text: str) -> None:
        message = inbound(text, source=dm())
        await step(
            "accept",
            lambda tx: accept_message(tx, message, settings=stage.settings, ids=stage.ids, commands=COMMANDS),
        )

    async def begin() -> BegunTurn:
        begun = await step("begin", lambda tx: begin_turn(tx, holder="one"))
        assert begun is not None
        return begun

    async def finish(begun: BegunTurn) -> None:
        reply = Reply(message=text_message("assistant", "yes"))
        await step(
            "finish",
            lambda tx: finish_turn(tx, begun.held, reply=reply, ids=stage.ids),
        )

    async def deliver() -> None:
        [delivery] = await step("claim", lambda tx: claim_deliveries(tx, connector))
        sent = Sent(message_id=str(delivery.id))
        await step("record", lambda tx: record_delivery(tx, connector, delivery.id, sent, deduplicates=False))

    await say("hello")
    first = await begin()
    await say("are you there?")
    await finish(first)
    await finish(await begin())
    await deliver()
    await deliver()
    assert steps == [
        ("accept", {"turns"}),
        ("begin", set()),
        ("accept", {"turns"}),
        ("finish", {"turns", "deliveries"}),
        ("begin", set()),
        # Nobody waits for an answer any more.
        ("finish", {"deliveries"}),
        ("claim", set()),
        ("record", {"deliveries"}),
        ("claim", set()),
        # Nothing more is to be said there.
        ("record", set()),
    ]
