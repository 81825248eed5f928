"""Gateways broken on purpose: the simulator must catch each of them."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import count

import pytest

from keryx.cli.torture import simulate
from keryx.core.conversations.tables.sessions import Session
from keryx.core.conversations.transactions import branch_session
from keryx.core.deliveries.rules.delivery import DeliveryKind
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.views.reply_addresses import reply_addresses
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.tables import turns
from keryx.core.turns.transactions import finish_turn, record_step
from keryx.gateway import deliveries, gateway, intake
from keryx.gateway.runtime import connector_lease
from keryx.gateway.runtime.runtime import Runtime
from keryx.gateway.turns import turn_recorder
from keryx.platforms.adapter import Adapter, Malformed
from keryx.store.database import Tx
from keryx.store.statements import load
from keryx.testing.simulator.crashes import MessageStory, crash_everywhere
from keryx.testing.simulator.fault_plan import FaultKind
from keryx.testing.simulator.history import run_histories
from keryx.testing.simulator.simulation import Simulation
from tests.conformance.stage import statement

SEEDS = range(300)

Broken = Callable[[], AbstractContextManager[object]]
Hunt = Callable[[], Iterator[list[str]]]
"""Yields the breaches of each run."""


def sql(name: str, right: str, wrong: str) -> Broken:
    """Return a patch that changes a statement."""

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
    """Return several patches as one, for faults that another guard would catch."""

    @contextmanager
    def broken() -> Iterator[None]:
        with ExitStack() as stack:
            for each in all_broken:
                stack.enter_context(each())
            yield

    return broken


@contextmanager
def without_turn_leases() -> Iterator[None]:
    """Disable the check of the turn's lease."""

    def trust(tx: Tx, held: TurnLease) -> turns.Turn:
        return turns.get_turn(tx, held.turn_id)

    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("keryx.core.") and hasattr(module, "require_turn_lease"):
                patch.setattr(module, "require_turn_lease", trust)
        yield


async def acknowledge_first(runtime: Runtime, adapter: Adapter, **_: object) -> None:
    async for update in adapter.receive():
        await adapter.acknowledge(update)
        await intake.accept_update(runtime, adapter, update)


async def take_everything_for_new(runtime: Runtime, adapter: Adapter, **_: object) -> None:
    numbers = count()
    async for update in adapter.receive():
        new: Inbound | Malformed = replace(update, ref=f"{update.ref}-{next(numbers)}")
        await intake.accept_update(runtime, adapter, new)
        await adapter.acknowledge(update)


def only_where_asked(
    tx: Tx, turn: turns.Turn, *, to: Sequence[Address] | None = None
) -> dict[Address, DeliveryKind]:
    return dict(list(reply_addresses(tx, turn, to=to).items())[:1])


def no_branch(_tx: Tx, session: Session, *_: object, **__: object) -> branch_session.Branched:
    return branch_session.Branched(branch_no=session.active_branch_no, message_count=session.message_count)


def histories() -> Iterator[list[str]]:
    for _, breaches in run_histories(SEEDS):
        yield breaches


def crashes(kind: FaultKind, *, gateways: int, short: bool = False) -> Callable[[], Iterator[list[str]]]:
    def hunt() -> Iterator[list[str]]:
        simulation = Simulation()
        for _, breaches in crash_everywhere(simulation, MessageStory(gateways=gateways, short=short), kind):
            yield breaches
        simulation.close()

    return hunt


BROKEN: dict[str, tuple[Broken, Hunt]] = {
    "acknowledged before it is stored": (
        lambda: patched(gateway, "run_intake", acknowledge_first),
        crashes("kill", gateways=1),
    ),
    "a redelivery taken for a new message": (
        lambda: patched(gateway, "run_intake", take_everything_for_new),
        histories,
    ),
    "no fencing": (
        together(
            without_turn_leases,
            sql("sessions.append", "ELSE lease_holder = :holder AND", "ELSE 1 = 1 OR :holder = '' AND"),
        ),
        crashes("freeze", gateways=2, short=True),
    ),
    "a connector lease that always counts as held": (
        lambda: patched(connector_lease.HeldConnector, "is_valid", lambda _: True),
        crashes("freeze", gateways=2, short=True),
    ),
    "an unmarked resend": (lambda: patched(deliveries, "_mark_repeated", lambda piece: piece), histories),
    "a once call that runs again after a crash": (
        together(
            lambda: patched(record_step, "after_crash", lambda *_, **__: "rerun"),
            sql("turns.start_step", "starts = 0 OR", "starts >= 0 OR"),
        ),
        crashes("kill", gateways=1),
    ),
    "a lost turn that is never recovered": (
        sql("turns.list_orphans", "t.state = 'running'", "t.state = 'asleep'"),
        crashes("kill", gateways=1),
    ),
    "a lost delivery that is never recovered": (
        sql("outbox.list_stuck", "o.state = 'sending'", "o.state = 'asleep'"),
        crashes("kill", gateways=1),
    ),
    "a preview that overtakes": (
        sql("outbox.has_waiting", "address = :address", "address = '-' || :address"),
        crashes("freeze", gateways=1),
    ),
    "everything to one chat": (sql("outbox.add", ":account, :chat_id,", ":account, 'ana',"), histories),
    "an attached surface left out": (
        lambda: patched(finish_turn, "reply_addresses", only_where_asked),
        histories,
    ),
    "a copy that is never sent": (
        sql("outbox.list_due", "o.state = 'ready' AND", "o.state = 'ready' AND o.kind <> 'copy' AND"),
        histories,
    ),
    "a tool without its approval": (
        lambda: patched(turn_recorder.TurnRecorder, "_effect", lambda *_: "once"),
        histories,
    ),
    "a denial that counts as an approval": (
        sql("approvals.decide", "SET state = :state", "SET state = REPLACE(:state, 'denied', 'approved')"),
        histories,
    ),
    "a retry beside the old answer": (lambda: patched(branch_session, "_branch", no_branch), histories),
    "a dead chat that is not remembered": (
        sql("outbox.list_due", "a.probe_at > :now", "a.probe_at > :now + a.probe_at"),
        histories,
    ),
    "a dead chat that delays others": (
        sql("outbox.list_due", "a.address = o.address", "a.platform = o.platform"),
        histories,
    ),
    "an ignored rate limit": (lambda: patched(deliveries.RateLimits, "left", lambda *_, **__: 0), histories),
    "no order at an address": (sql("outbox.list_due", "e.id < o.id", "e.id < o.id - 1000"), histories),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_gateway_is_caught(name: str) -> None:
    broken, hunt = BROKEN[name]
    with broken():
        assert any(hunt()), "no breach was found"


def test_the_simulator_names_the_seed_of_a_broken_history(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(0, 2)
    with BROKEN["everything to one chat"][0]():
        assert not simulate(0, 2)
    assert "repeat it with --seed 0 --histories 1" in capsys.readouterr().err
