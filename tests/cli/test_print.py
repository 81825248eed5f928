"""``keryx --print``: the answer is printed, refused or stopped, and leaves no trace in the chat."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from keryx.agents.agent import Agent
from keryx.agents.model.guide import Guide
from keryx.cli.chat.print_answer import NEEDS_PERSON, print_answer
from keryx.config import Settings
from keryx.core.conversations.rules.session_key import ScopeSettings
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.turns.views.terminal import ViewCursor, show_terminal
from keryx.core.turns.views.terminal_session import LocalChat
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.tools.keryx.plugin import keryx_tools
from keryx.tools.tool import Toolbox
from tests.cli.runner import Storyteller, make_runtime
from tests.cli.terminal import PATIENCE_SECONDS, ROOT, command, environment
from tests.cli.test_chat import look as look_into
from tests.cli.test_chat_here import accept, running_chat
from tests.flow.running import Actor

Printed = tuple[int, str, str]
Ask = Callable[..., Awaitable[Printed]]
PERSON = Settings(scope=ScopeSettings(dm="person"), welcome=None)


@pytest.fixture
async def store(store_address: str) -> AsyncIterator[Database]:
    database = open_database(store_address)
    yield database
    assert await database.read(check_invariants) == []
    await database.close()


@pytest.fixture
def ask(store: Database, capsys: pytest.CaptureFixture[str]) -> Ask:
    async def ask(
        text: str,
        agent: Agent,
        resume: str | None = None,
        *,
        settings: Settings | None = None,
        troubles: Sequence[str] = (),
    ) -> Printed:
        desk = replace(make_runtime(store, settings=settings), troubles=lambda: troubles)
        code = await print_answer(desk, agent, Toolbox(keryx_tools(store)), text, resume=resume)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return ask


async def test_only_the_answer_is_printed_or_the_reason_for_none(ask: Ask, tmp_path: Path) -> None:
    teller = Storyteller(tmp_path / "gate")
    assert await ask("hello", teller) == (0, "You said: hello\n", "")
    told = await ask("hi", teller, troubles=["It is broken."])
    assert told == (0, "You said: hi\n", "keryx: It is broken.\n")
    assert await ask("again", teller, "hello") == (0, "You said: again\n", "")
    assert await ask("/title", teller, "hello") == (0, "This conversation is called 'hello'.\n", "")
    code, out, err = await ask("fail", teller)
    assert (code, out) == (1, "")
    assert err == "keryx: The turn failed: there is no more paper\n"
    code, out, err = await ask("remember that I like tea", Guide())
    assert (code, out) == (NEEDS_PERSON, "")
    first, until, how = err.splitlines()
    assert first == "keryx: A person must answer first. May I keep this note for later? 'I like tea'"
    assert until.startswith("(Question 1 waits until 20")
    assert how.startswith("To answer and continue: keryx chat --resume 20")
    code, out, err = await ask("x", teller, "nowhere")
    assert (code, out) == (1, "")
    assert "nowhere" in err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/undo many", "give a number of turns from 1 to 100"),
        ("/undo", "There is nothing here to take back."),
        ("/nwe", "Did you mean /new?"),
        ("/new please", "/new takes no arguments"),
        ("/resume nowhere", "There is no conversation called 'nowhere' here."),
    ],
)
async def test_a_command_that_does_nothing_is_an_error_with_its_reason(ask: Ask, text: str, why: str) -> None:
    code, out, err = await ask(text, Actor())
    assert (code, out) == (1, "")
    assert err.startswith("keryx: ")
    assert why in err


async def test_the_answer_of_a_command_is_that_of_the_turn_it_begins(ask: Ask) -> None:
    assert await ask("hello", Actor()) == (0, "You said: hello\n", "")
    assert await ask("/retry", Actor(), "hello") == (0, "You said: hello\n", "")
    code, out, err = await ask("/compress", Actor(), "hello")
    assert (code, err) == (0, "")
    assert out.strip()


async def test_a_printed_question_leaves_a_closed_conversation(
    store: Database, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = await ask("remember that I like tea", Guide())
    assert code == NEEDS_PERSON
    name = err.split()[-1]
    here = LocalChat(source=LOCAL_CLI, settings=Settings())
    seen = await store.read(lambda tx: show_terminal(tx, here, ViewCursor(after=0)))
    assert (seen.session_id, seen.unfinished) == (None, 0)
    async with running_chat(make_runtime(store), Guide(), monkeypatch, resume=name) as at:
        # The printed question did not count as the first contact.
        await at.person.sees("Hello! I keep our conversation")
        await at.person.sees("This is question 1.")
        at.person.enter("/approve")
        await at.person.sees("Kept.")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                seen = await store.read(lambda tx: show_terminal(tx, here, ViewCursor(after=0)))
                if seen.is_at_rest and not seen.unfinished:
                    break
                await store.changed(since=store.change_no, timeout_seconds=0.1)
        at.person.enter("/why")
        await at.person.sees("was sent on local")
        at.person.enter("/status")
        await at.person.sees("Nothing is running.")
        assert "Held in" not in at.person.text
        await at.leave()


async def test_a_printed_question_has_its_own_session_in_every_scope(store: Database, ask: Ask) -> None:
    await accept(store, "/title Rome", LOCAL_CLI, settings=PERSON)
    place = LocalChat(source=LOCAL_CLI, settings=PERSON)
    before = await store.read(lambda tx: show_terminal(tx, place, ViewCursor(after=0)))
    told = "This conversation is now called 'printed'.\n"
    assert await ask("/title printed", Actor(), settings=PERSON) == (0, told, "")
    assert (await ask("hi", Actor(), "Rome", settings=PERSON)) == (0, "You said: hi\n", "")
    after = await store.read(lambda tx: show_terminal(tx, place, ViewCursor(after=0)))
    assert after.session_id == before.session_id


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_stops_the_answer_for_good(
    store: Database, store_address: str, tmp_path: Path, number: signal.Signals
) -> None:
    process = await asyncio.create_subprocess_exec(
        *command("print", store_address, "tell me a story", "--gate", str(tmp_path / "gate")),
        cwd=ROOT,
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await store.read(lambda tx: tx.row("turns.find", turn_id=1)) is None:
            await store.changed(since=store.change_no, timeout_seconds=0.1)
        process.send_signal(number)
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (128 + number, b"", b"keryx: Stopped.\n")
    assert await look_into(store_address) == ([], ["cancelled"])


async def test_an_output_that_cannot_be_written_is_reported_in_one_sentence(
    store_address: str, tmp_path: Path
) -> None:
    with os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb") as full:
        process = await asyncio.create_subprocess_exec(
            *command("print", store_address, "hello", "--gate", str(tmp_path / "gate")),
            cwd=ROOT,
            env=environment(),
            stdout=full,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE_SECONDS):
            _, err = await process.communicate()
    told = b"keryx: The answer could not be written: No space left on device.\n"
    assert (process.returncode, err) == (1, told)
