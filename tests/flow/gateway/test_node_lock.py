"""The lock of a killed process proves its death, so its leases are free at once."""

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
    """Let the node ``other`` hold an account."""
    await store.write(
        lambda tx: enter_node(tx, holder="other", kind="gateway", host="here", pid=1, version="0")
    )
    taken = await store.write(lambda tx: take_connector(tx, platform="fake", account="", holder="other"))
    assert taken is not None


async def test_the_leases_of_a_killed_process_are_free_at_the_next_start(
    store: Database, tmp_path: Path
) -> None:
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


async def test_the_leases_of_a_process_that_dies_later_are_released_on_request(
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


async def test_a_running_gateway_releases_the_leases_of_dead_processes(
    store: Database, platform: FakePlatform
) -> None:
    """The dead process's turn continues long before its lease expires."""
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


def test_a_lock_file_without_its_final_name_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "other.new").touch()
    with take_dead_lock(tmp_path / "other.new") as dead:
        assert dead is None
    with take_dead_lock(tmp_path / "gone") as dead:
        assert dead is None
    with hold_lock_file(tmp_path, "me"), take_dead_lock(tmp_path / "me") as dead:
        assert dead is None
