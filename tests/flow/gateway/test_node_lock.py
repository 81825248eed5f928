"""A process that was killed is known to be dead by its lock, and what it held is free at once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.core.accounts.transactions import take_connector
from keryx.core.conversations.rules.message import TextPart
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.transactions.accept_message import accept_message
from keryx.core.turns.transactions.begin_turn import begin_turn
from keryx.core.upkeep.transactions.record_heartbeat import enter_node, release_dead_node
from keryx.core.upkeep.views.nodes import show_nodes
from keryx.gateway.runtime.node_lock import FOLDER, hold_lock_file, node_lock, take_dead_lock
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.testing.platform import FakePlatform
from tests.architecture.source import ROOT
from tests.flow.running import Actor, gateway_of, until

HOLDING = """
import sys
from pathlib import Path
from keryx.gateway.runtime.node_lock import hold_lock_file
with hold_lock_file(Path(sys.argv[1]), "other"):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold_in_another_process(folder: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, folder],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


async def hold_account(store: Database) -> None:
    """Let ``other`` work on the store and hold an account."""
    await store.write(
        lambda tx: enter_node(tx, holder="other", kind="gateway", host="here", pid=1, version="0")
    )
    taken = await store.write(lambda tx: take_connector(tx, platform="fake", account="", holder="other"))
    assert taken is not None


async def test_what_a_killed_process_held_is_free_at_the_next_start(store: Database, tmp_path: Path) -> None:
    with hold_in_another_process(tmp_path / FOLDER) as other:
        await hold_account(store)
        async with node_lock(store, tmp_path, "me"):
            shown = await store.read(show_nodes)
            assert [held.holder for held in shown.accounts] == ["other"], "it lives, so it keeps what it has"
        other.send_signal(signal.SIGSTOP)
        async with node_lock(store, tmp_path, "me"):
            assert (await store.read(show_nodes)).accounts, "it is frozen, so only the lease decides"
        other.kill()
        other.wait()
    async with node_lock(store, tmp_path, "me"):
        shown = await store.read(show_nodes)
        assert (shown.accounts, shown.nodes) == ((), ())
        assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["me"]
    assert list((tmp_path / FOLDER).iterdir()) == []


async def test_what_one_held_that_dies_meanwhile_is_freed_when_it_is_looked_for(
    store: Database, tmp_path: Path
) -> None:
    with hold_in_another_process(tmp_path / FOLDER) as other:
        await hold_account(store)
        async with node_lock(store, tmp_path, "me") as release_dead_nodes:
            await release_dead_nodes()
            assert (await store.read(show_nodes)).accounts
            other.kill()
            other.wait()
            await release_dead_nodes()
            assert (await store.read(show_nodes)).accounts == ()


async def test_a_gateway_looks_for_the_dead_while_it_runs(store: Database, platform: FakePlatform) -> None:
    """What the dead one was answering is answered long before its lease runs out."""
    inbound = Inbound(source=platform.source("ana"), ref="1", parts=(TextPart(text="hello"),))
    await store.write(
        lambda tx: accept_message(tx, inbound, settings=Settings(), ids=Ids(), commands=COMMANDS)
    )
    await store.write(lambda tx: begin_turn(tx, holder="other"))

    async def release_dead_nodes() -> None:
        await store.write(lambda tx: release_dead_node(tx, holder="other"))

    actor = Actor()
    async with gateway_of(store, [platform.adapter()], actor, release_dead_nodes=release_dead_nodes):
        await until(lambda: bool(actor.briefs))


def test_a_lock_without_a_name_yet_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "other.new").touch()
    with take_dead_lock(tmp_path / "other.new") as dead:
        assert dead is None
    with take_dead_lock(tmp_path / "gone") as dead:
        assert dead is None
    with hold_lock_file(tmp_path, "me"), take_dead_lock(tmp_path / "me") as dead:
        assert dead is None
