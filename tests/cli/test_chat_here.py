"""The terminal chat in this process, at a pseudo-terminal."""

import asyncio
import io
import os
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session

from keryx.agents.agent import Agent, Answer, Brief, Stage
from keryx.agents.model.guide import SETUP, Guide
from keryx.cli.chat.chat import chat
from keryx.cli.chat.worker import is_alive
from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.core.accounts.transactions import take_connector
from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.session_key import ScopeSettings
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.deliveries.rules.delivery import Rejected
from keryx.core.deliveries.rules.pieces import TextPiece
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.transactions.claim_deliveries import claim_deliveries
from keryx.core.people.rules.access import Refused
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.tables import inbox
from keryx.core.turns.transactions.accept_message import accept_message
from keryx.core.turns.transactions.begin_turn import begin_turn
from keryx.core.upkeep.transactions.record_heartbeat import enter_node, release_dead_node
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.core.upkeep.views.nodes import show_nodes
from keryx.errors import StoreUnavailable
from keryx.gateway.gateway import Gateway
from keryx.gateway.runtime.runtime import Runtime
from keryx.platforms.adapter import Outgoing
from keryx.platforms.terminal.adapter import TerminalAdapter
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.tools.keryx.plugin import keryx_tools
from keryx.tools.tool import Tool, Toolbox
from tests.cli.runner import Storyteller, make_runtime
from tests.cli.terminal import ALT_ENTER, CTRL_C, CTRL_D, PATIENCE_SECONDS, Person, open_terminal
from tests.flow.running import Actor, said

NO_PROCESS = 2**22 + 1
"""Larger than any process id."""
WEB = Source(platform="web", chat_id="browser", chat_type="dm")


@pytest.fixture
async def store(store_address: str) -> AsyncIterator[Database]:
    database = open_database(store_address)
    yield database
    assert await database.read(check_invariants) == []
    await database.close()


@dataclass
class RunningChat:
    """A person at a chat in this process."""

    person: Person
    chatting: "asyncio.Task[int]"

    async def leave(self) -> None:
        self.person.type(CTRL_D)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await self.chatting == 0


@asynccontextmanager
async def running_chat(
    runtime: Runtime,
    agent: Agent,
    monkeypatch: pytest.MonkeyPatch,
    *,
    resume: str | None = None,
    history: Path | None = None,
    tools: Sequence[Tool] = (),
) -> AsyncIterator[RunningChat]:
    master, slave = open_terminal()
    monkeypatch.setenv("TERM", "xterm")
    with (
        os.fdopen(slave, "r", closefd=False) as keyboard,
        os.fdopen(slave, "w", closefd=False) as screen,
        monkeypatch.context() as patched,
        create_app_session(),
    ):
        patched.setattr("sys.stdin", keyboard)
        patched.setattr("sys.stdout", screen)
        person = Person(master)
        toolbox = Toolbox([*keryx_tools(runtime.database), *tools])
        chatting = asyncio.create_task(
            chat(runtime, agent, toolbox, agent_name="Somebody", resume=resume, history=history)
        )
        try:
            yield RunningChat(person, chatting)
        finally:
            chatting.cancel()
            await asyncio.gather(chatting, return_exceptions=True)
            person.leave()
    os.close(slave)
    os.close(master)


async def accept(
    database: Database, text: str, source: Source = WEB, *, settings: Settings | None = None
) -> None:
    runtime = make_runtime(database, settings=settings or Settings(welcome=None))
    inbound = Inbound(source=source, ref=runtime.ids.token(), parts=(TextPart(text=text),))
    outcome = await database.write(
        lambda tx: accept_message(tx, inbound, settings=runtime.settings, ids=runtime.ids, commands=COMMANDS)
    )
    assert not isinstance(outcome, Refused)


async def test_the_guide_answers_everything_that_it_offers(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_chat(make_runtime(store), Guide(), monkeypatch) as at:
        await at.person.sees("Somebody answers here.")
        at.person.enter("hello")
        await at.person.sees(SETUP[:20])
        await at.person.sees("I keep our conversation")
        at.person.enter("remember that I like tea")
        await at.person.sees("I will ask whether I may keep that.")
        await at.person.sees("Waiting for your approval")
        at.person.enter("/approve")
        await at.person.sees("Kept.")
        at.person.enter("/search tea")
        await at.person.sees("user: ")
        await at.leave()
        await at.person.sees("keryx chat --resume")
    assert (await store.read(show_nodes)).nodes == ()


async def test_leaving_without_a_message_shows_no_resume_command(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_chat(make_runtime(store), Guide(), monkeypatch) as at:
        await at.person.sees("Ready.")
        at.person.type(CTRL_C)
        at.person.enter("   ")
        await at.leave()
        assert "--resume" not in at.person.text


async def test_ctrl_c_stops_the_answer_and_the_next_message_is_answered(
    store: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_chat(make_runtime(store), Storyteller(tmp_path / "gate"), monkeypatch) as at:
        at.person.enter("tell me")
        await at.person.sees("Once there was a herald.")
        at.person.enter("next")
        await at.person.sees("1 waiting")
        await at.person.sees("Ctrl-C stops")
        # As where nobody reads the keyboard at this moment.
        signal.raise_signal(signal.SIGINT)
        at.person.type(CTRL_C)
        await at.person.sees("(stopped)")
        await at.person.sees("You said: next")
        assert at.person.text.count("He spoke") == 1
        await at.leave()


async def test_an_unfinished_paragraph_is_drawn_and_then_written_once(
    store: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    async with running_chat(make_runtime(store), Storyteller(gate), monkeypatch) as at:
        at.person.enter("tell me")
        await at.person.sees("He spoke")
        # What is typed and sent meanwhile leaves nothing of it behind.
        at.person.enter("next")
        await at.person.sees("1 waiting")
        await at.person.sees("He spoke")
        gate.touch()
        await at.person.sees("He spoke to kings.")
        await at.person.sees("You said: next")
        assert at.person.text.count("He spoke") == 1
        await at.leave()


async def test_messages_in_the_previous_conversation_are_still_answered(
    store: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    async with running_chat(make_runtime(store), Storyteller(gate), monkeypatch) as at:
        at.person.enter("tell me")
        await at.person.sees("Once there was a herald.")
        at.person.enter("and then")
        await at.person.sees("1 waiting")
        at.person.enter("/new")
        await at.person.sees("Fresh conversation")
        gate.touch()
        await at.person.sees("to kings.")
        await at.person.sees("You said: and then")
        assert at.person.text.count("Once there was a herald.") == 1
        await at.leave()


async def test_a_slow_answer_at_exit_continues_at_the_next_start(
    store: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    async with running_chat(make_runtime(store), Storyteller(gate), monkeypatch) as at:
        at.person.enter("tell me")
        await at.person.sees("Once there was a herald.")
        await at.leave()
        await at.person.sees("answered at the next start")
    gate.touch()
    async with running_chat(make_runtime(store), Storyteller(gate), monkeypatch, resume="tell me") as at:
        await at.person.sees("He spoke to kings.")
        await at.person.sees("Going on with")
        await at.leave()


async def test_a_gateway_answers_and_messages_from_elsewhere_are_shown(
    store: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    gateway = Gateway(make_runtime(store), Storyteller(gate), Toolbox(), [])
    await gateway.start()
    try:
        async with running_chat(make_runtime(store), Guide(), monkeypatch) as at:
            at.person.enter("tell me")
            await at.person.sees("He spoke")
            await accept(store, "/attach tell me")
            await accept(store, "hello from the browser")
            await at.person.sees("hello from the browser")
            gate.touch()
            await at.person.sees("You said: hello from the browser")
            assert at.person.text.count("to kings.") == 1
            at.person.enter("/search kings")
            await at.person.sees("assistant: ")
            await at.leave()
    finally:
        await gateway.stop(seconds=1)


async def test_answers_to_other_surfaces_of_one_conversation_are_shown_in_full(
    store: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, settings = tmp_path / "gate", Settings(scope=ScopeSettings(dm="person"), welcome=None)
    async with running_chat(make_runtime(store, settings=settings), Storyteller(gate), monkeypatch) as at:
        at.person.enter("hello")
        await at.person.sees("You said: hello")
        await accept(store, "tell me", settings=settings)
        await at.person.sees("Once there was a herald.")
        gate.touch()
        await at.person.sees("He spoke to kings.")
        await accept(store, "from the browser", settings=settings)
        await at.person.sees("You said: from the browser")
        assert at.person.text.count("Once there was a herald.") == 1
        assert at.person.text.count("He spoke to kings.") == 1
        await at.leave()


async def test_a_retried_failure_is_shown_and_the_answer_comes_once(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    async def stumble(brief: Brief, stage: Stage) -> Answer:
        await stage.say("It is ")
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("planted")
        return said("It is four.")

    async with running_chat(make_runtime(store), Actor(stumble), monkeypatch) as at:
        at.person.enter("two and two?")
        await at.person.sees("Keryx tries again")
        await at.person.sees("It is four.")
        await at.leave()


async def test_the_text_of_a_silent_turn_stays_on_the_screen(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def mumble(brief: Brief, stage: Stage) -> Answer:
        await stage.say("Hm hm.")
        return Answer(message=None, silent=True)

    async with running_chat(make_runtime(store), Actor(mumble), monkeypatch) as at:
        at.person.enter("well?")
        await at.person.sees("Hm hm.")
        await at.leave()


async def test_a_terminal_without_the_connector_lease_shows_everything(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.write(
        lambda tx: enter_node(tx, holder="far", kind="chat", host="far.away", pid=1, version="1")
    )
    await store.write(lambda tx: take_connector(tx, platform="local", account="", holder="far"))
    async with running_chat(make_runtime(store), Actor(), monkeypatch) as at:
        at.person.enter("hello")
        await at.person.sees("You said: hello")
        await accept(store, "from beside you", LOCAL_CLI)
        await at.person.sees("another terminal: from beside you")
        await at.leave()


async def test_leases_of_a_killed_local_terminal_are_released_at_once(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.write(
        lambda tx: enter_node(
            tx, holder="dead", kind="chat", host=socket.gethostname(), pid=NO_PROCESS, version="1"
        )
    )
    connector = await store.write(lambda tx: take_connector(tx, platform="local", account="", holder="dead"))
    assert connector is not None
    await accept(store, "/title Rome", LOCAL_CLI)
    claimed = await store.write(lambda tx: claim_deliveries(tx, connector))
    await accept(store, "hello", LOCAL_CLI)
    assert await store.write(lambda tx: begin_turn(tx, holder="dead")) is not None
    assert len(claimed) == 1
    async with running_chat(make_runtime(store), Actor(), monkeypatch) as at:
        await at.person.sees("You said: hello")
        # It may have been on the screen of the one that was killed.
        await at.person.sees("(possibly repeated)")
        await at.leave()
    async with running_chat(make_runtime(store), Actor(), monkeypatch) as at:
        at.person.enter("bye")
        await at.person.sees("You said: bye")
        assert "hello" not in at.person.text
        assert "repeated" not in at.person.text
        await at.leave()


async def test_an_open_terminal_takes_over_from_one_that_dies(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.write(lambda tx: take_connector(tx, platform="local", account="", holder="beside"))
    await accept(store, "hello", LOCAL_CLI)
    assert await store.write(lambda tx: begin_turn(tx, holder="beside")) is not None
    looked: list[str] = []

    async def release_dead_nodes() -> None:
        looked.append("for the dead")
        if len(looked) > 1:  # at the start it lived
            await store.write(lambda tx: release_dead_node(tx, holder="beside"))

    async with running_chat(
        replace(make_runtime(store), release_dead_nodes=release_dead_nodes), Actor(), monkeypatch
    ) as at:
        await at.person.sees("You said: hello")
        await at.leave()


async def test_typed_text_may_have_several_lines_and_is_in_the_history(
    store: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    history = tmp_path / "data" / "history"
    async with running_chat(make_runtime(store), Actor(), monkeypatch, history=history) as at:
        await at.person.sees("Ready.")
        at.person.type(f"/sea{CTRL_C}one{ALT_ENTER}two\\\rthree\r")
        await at.person.sees("You said: one\ntwo\nthree")
        at.person.type("/und")
        await at.person.sees("Undo the last turn, or several.")
        at.person.type(CTRL_C)
        await at.leave()
    assert "+two" in history.read_text()


async def test_the_chat_waits_with_a_note_while_the_store_is_unavailable(
    store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_away = False

    def hook(name: str) -> None:
        if is_away and name == "terminal.newest":
            raise StoreUnavailable("planted")

    database = open_database(store_address, hook=hook)
    try:
        async with running_chat(make_runtime(database), Actor(), monkeypatch) as at:
            at.person.enter("hello")
            await at.person.sees("You said: hello")
            is_away = True
            at.person.enter("are you there?")
            await at.person.sees("The store is unavailable: planted")
            is_away = False
            await at.person.sees("You said: are you there?")
            await at.leave()
    finally:
        await database.close()


async def test_all_lines_from_a_pipe_are_answered_before_the_exit(
    store: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\n\n/title Greeting\n/resume nothing\n"))
    runtime = replace(make_runtime(store), troubles=lambda: ["It is broken."])
    assert await chat(runtime, Actor(), Toolbox(), agent_name="Somebody") == 0
    out = capsys.readouterr().out
    assert "You said: hello\n" in out
    assert out.count("It is broken.") == 1
    assert "There is no conversation called 'nothing' here." in out


async def test_resuming_an_unknown_conversation_continues_no_other(
    store: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await accept(store, "waiting", LOCAL_CLI)
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\n"))
    assert await chat(make_runtime(store), Actor(), Toolbox(), agent_name="Somebody", resume="nosuch") == 1
    out = capsys.readouterr().out
    assert "There is no conversation called 'nosuch' here." in out
    assert "You said" not in out
    assert len(await store.read(lambda tx: inbox.list_fates(tx, platform="local", after=0, limit=9))) == 2
    async with running_chat(make_runtime(store), Actor(), monkeypatch, resume="nosuch") as at:
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await at.chatting == 1
        await at.person.sees("There is no conversation called 'nosuch' here.")
        assert "keryx chat --resume" not in at.person.text


async def test_a_closed_terminal_accepts_and_edits_nothing() -> None:
    async def never(_key: str) -> bool:
        return False

    adapter = TerminalAdapter(None, shown=never)
    outgoing = Outgoing(to=Address.of(LOCAL_CLI), piece=TextPiece(text="hello"), key="key-0")
    assert [update async for update in adapter.receive()] == []
    assert isinstance(await adapter.send(outgoing), Rejected)
    assert isinstance(await adapter.edit(outgoing, message_id="1"), Rejected)


def test_a_process_is_alive_until_it_ends() -> None:
    assert is_alive(os.getpid())
    assert is_alive(1)
    assert not is_alive(NO_PROCESS)
