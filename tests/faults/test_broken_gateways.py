"""Gateways broken on purpose: the simulator must catch each of them, or it is the simulator that is broken."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import count

import pytest

from keryx.cli.torture import simulate
from keryx.domain.inbox import Inbound
from keryx.domain.lease import Lease
from keryx.domain.outbox import DeliveryKind
from keryx.domain.route import Address
from keryx.domain.turn import TurnId
from keryx.gateway import dispatch, hold, intake, limits, stage, supervisor
from keryx.gateway.desk import Desk
from keryx.platforms.adapter import Adapter, Malformed
from keryx.store.database import Tx
from keryx.store.statements import load
from keryx.store.tables import turns
from keryx.store.tables.sessions import SessionRecord
from keryx.testing.simulator.crashes import MessagesWay, crash_everywhere
from keryx.testing.simulator.history import run_histories
from keryx.testing.simulator.theatre import Theatre
from keryx.testing.simulator.world import How
from keryx.transactions import branch_session, close_steps, finish_turn
from keryx.transactions.where_said import where_said
from tests.conformance.stage import statement

SEEDS = range(300)

Broken = Callable[[], AbstractContextManager[object]]
Hunt = Callable[[], Iterator[list[str]]]
"""Yields the breaches of one run after the other."""


def sql(name: str, right: str, wrong: str) -> Broken:
    """A statement that says something else."""

    def broken() -> AbstractContextManager[object]:
        text = load("sqlite")[name].sql
        assert text.count(right) == 1, f"{name} has no {right!r} to break"
        return statement(name, text.replace(right, wrong))

    return broken


@contextmanager
def patched(module: object, name: str, instead: object) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, instead)
        yield


def together(*all_broken: Broken) -> Broken:
    """Several at once, where one alone is caught by another guard."""

    @contextmanager
    def broken() -> Iterator[None]:
        with ExitStack() as stack:
            for each in all_broken:
                stack.enter_context(each())
            yield

    return broken


@contextmanager
def without_hold_turn() -> Iterator[None]:
    """Turns whose lease nobody looks at."""

    def trust(tx: Tx, lease: Lease, *, turn_id: TurnId) -> turns.Turn:
        return turns.get_turn(tx, turn_id)

    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("keryx.transactions.") and hasattr(module, "hold_turn"):
                patch.setattr(module, "hold_turn", trust)
        yield


async def acknowledge_first(desk: Desk, adapter: Adapter, **_: object) -> None:
    async for update in adapter.receive():
        await adapter.acknowledge(update)
        await intake.accept_update(desk, adapter, update)


async def take_everything_for_new(desk: Desk, adapter: Adapter, **_: object) -> None:
    numbers = count()
    async for update in adapter.receive():
        new: Inbound | Malformed = replace(update, ref=f"{update.ref}-{next(numbers)}")
        await intake.accept_update(desk, adapter, new)
        await adapter.acknowledge(update)


def only_where_asked(
    tx: Tx, turn: turns.Turn, *, to: Sequence[Address] | None = None
) -> dict[Address, DeliveryKind]:
    return dict(list(where_said(tx, turn, to=to).items())[:1])


def no_branch(_tx: Tx, session: SessionRecord, *_: object, **__: object) -> branch_session.Branched:
    return branch_session.Branched(branch_no=session.active_branch_no, message_count=session.message_count)


def histories() -> Iterator[list[str]]:
    for _, breaches in run_histories(SEEDS):
        yield breaches


def crashes(how: How, *, gateways: int, short: bool = False) -> Callable[[], Iterator[list[str]]]:
    def hunt() -> Iterator[list[str]]:
        theatre = Theatre()
        for _, breaches in crash_everywhere(theatre, MessagesWay(gateways=gateways, short=short), how):
            yield breaches
        theatre.close()

    return hunt


BROKEN: dict[str, tuple[Broken, Hunt]] = {
    "acknowledged before it is stored": (
        lambda: patched(supervisor, "take_in", acknowledge_first),
        crashes("kill", gateways=1),
    ),
    "a redelivery taken for something new": (
        lambda: patched(supervisor, "take_in", take_everything_for_new),
        histories,
    ),
    "no fencing": (
        together(
            without_hold_turn,
            sql("sessions.append_held", "lease_holder = :holder AND", "1 = 1 OR :holder = '' AND"),
        ),
        crashes("freeze", gateways=2, short=True),
    ),
    "an account nobody is unsure of": (
        lambda: patched(hold.Hold, "is_sure", lambda _: True),
        crashes("freeze", gateways=2, short=True),
    ),
    "an unmarked resend": (lambda: patched(dispatch, "_marked", lambda piece: piece), histories),
    "a once call that runs again after a crash": (
        together(
            lambda: patched(close_steps, "after_crash", lambda *_, **__: "rerun"),
            sql("turns.start_step", "starts = 0 OR", "starts >= 0 OR"),
        ),
        crashes("kill", gateways=1),
    ),
    "a lost turn nobody takes up": (
        sql("turns.list_orphans", "t.state = 'running'", "t.state = 'asleep'"),
        crashes("kill", gateways=1),
    ),
    "a lost delivery nobody takes up": (
        sql("outbox.list_stuck", "o.state = 'sending'", "o.state = 'asleep'"),
        crashes("kill", gateways=1),
    ),
    "a preview that overtakes": (
        sql("outbox.has_waiting", "address = :address", "address = '-' || :address"),
        crashes("freeze", gateways=1),
    ),
    "everything to one chat": (sql("outbox.add", ":account, :chat_id,", ":account, 'ana',"), histories),
    "an attached surface left out": (
        lambda: patched(finish_turn, "where_said", only_where_asked),
        histories,
    ),
    "a copy nobody sends": (
        sql("outbox.list_due", "o.state = 'ready' AND", "o.state = 'ready' AND o.kind <> 'copy' AND"),
        histories,
    ),
    "a tool that asks nobody": (
        lambda: patched(stage.TurnStage, "_effect", lambda *_: "once"),
        histories,
    ),
    "a no that counts as yes": (
        sql("approvals.decide", "SET state = :state", "SET state = REPLACE(:state, 'denied', 'approved')"),
        histories,
    ),
    "a retry beside the old answer": (lambda: patched(branch_session, "_branch", no_branch), histories),
    "a dead chat that is not remembered": (
        sql("outbox.list_due", "a.probe_at > :now", "a.probe_at > :now + a.probe_at"),
        histories,
    ),
    "a dead chat that holds up others": (
        sql("outbox.list_due", "a.address = o.address", "a.platform = o.platform"),
        histories,
    ),
    "a limit nobody heeds": (lambda: patched(limits.Limits, "left", lambda *_, **__: 0), histories),
    "no order at an address": (sql("outbox.list_due", "e.id < o.id", "e.id < o.id - 1000"), histories),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_gateway_is_caught(name: str) -> None:
    broken, hunt = BROKEN[name]
    with broken():
        assert any(hunt()), "nobody noticed"


def test_torture_names_the_seed_of_a_history_that_broke(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(0, 2)
    with BROKEN["everything to one chat"][0]():
        assert not simulate(0, 2)
    assert "play it again with --seed 0 --histories 1" in capsys.readouterr().err
