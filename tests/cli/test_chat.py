"""The terminal chat in its own processes, at real pseudo-terminals: alone, beside a gateway, and killed."""

import signal
from pathlib import Path

from keryx.agents.model.guide import ABILITIES, SETUP
from keryx.commands.table import COMMANDS
from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.source import Source
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.tables import inbox
from keryx.core.turns.transactions.accept_message import Accepted, accept_message
from keryx.core.turns.views.terminal_session import find_title
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.ids import Ids
from keryx.store.database import Database, ReadTx
from keryx.store.opening import open_database
from tests.cli.runner import make_runtime
from tests.cli.terminal import ALT_ENTER, CTRL_C, CTRL_D, chat_process, gateway, run

WEB = Source(platform="web", chat_id="browser", chat_type="dm")


async def look(address: str) -> tuple[list[str], list[str]]:
    """Return the broken invariants of a store, and the fates of all messages."""
    database = open_database(address)
    try:
        broken = await database.read(check_invariants)
        fates = await database.read(_fates)
    finally:
        await database.close()
    return [str(each) for each in broken], fates


def _fates(tx: ReadTx) -> list[str]:
    numbers = range(1, 100)
    items = [inbox.find_item(tx, number) for number in numbers]
    return [str(item.fate) for item in items if item is not None]


async def say_elsewhere(database: Database, text: str) -> Accepted:
    """Accept a message of the owner from another surface."""
    desk = make_runtime(database)
    inbound = Inbound(source=WEB, ref=Ids().token(), parts=(TextPart(text=text),))
    outcome = await database.write(
        lambda tx: accept_message(tx, inbound, settings=desk.settings, ids=desk.ids, commands=COMMANDS)
    )
    assert isinstance(outcome, Accepted)
    return outcome


async def test_a_message_is_answered_and_the_resume_command_is_shown(
    store_address: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with chat_process(store_address, "--gate", str(gate)) as person:
        await person.sees("The guide answers here")
        person.enter("good morning")
        await person.sees("You said: good morning")
        person.enter("and good night")
        await person.sees("You said: and good night")
        person.type(CTRL_D)
        await person.sees("keryx chat --resume")
        assert await person.ended() == 0
        assert person.text.count("You said: good morning") == 1
    assert await look(store_address) == ([], ["answered", "answered"])


async def test_a_conversation_continues_by_default_and_by_name(store_address: str, tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    async with chat_process(store_address, "--gate", gate) as person:
        person.enter("about Rome")
        await person.sees("You said: about Rome")
        person.enter("/new")
        await person.sees("Fresh conversation")
        person.enter("about Paris")
        await person.sees("You said: about Paris")
        person.type(CTRL_D)
        assert await person.ended() == 0
    async with chat_process(store_address, "--gate", gate, "--resume", "about Rome") as person:
        await person.sees("Going on with 'about Rome'")
        await person.sees("Ready.")
        person.type(CTRL_D)
        await person.sees("(about Rome)")
        assert await person.ended() == 0
        assert "You said" not in person.text


async def test_an_answer_is_shown_while_it_grows_and_ctrl_c_keeps_its_text(
    store_address: str, tmp_path: Path
) -> None:
    async with chat_process(store_address, "--gate", str(tmp_path / "gate")) as person:
        await person.sees("Ready.")
        person.enter("tell me a story")
        await person.sees("Once there was a herald.")
        await person.sees("Ctrl-C stops")
        await person.sees("He spoke")
        person.enter("one more thing")
        await person.sees("1 waiting")
        person.type(CTRL_C)
        await person.sees("(stopped)")
        await person.sees("You said: one more thing")
        person.type(CTRL_D)
        assert await person.ended() == 0
        assert person.text.count("Once there was a herald.") == 1
        assert person.text.count("He spoke") == 1
    broken, fates = await look(store_address)
    assert broken == []
    assert sorted(fates) == ["answered", "cancelled", "command"]


async def test_an_answer_interrupted_by_a_kill_continues_at_the_next_start(
    store_address: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with chat_process(store_address, "--gate", str(gate)) as person:
        person.enter("tell me a story")
        await person.sees("Once there was a herald.")
        person.process.send_signal(signal.SIGKILL)
        await person.ended()
    gate.touch()
    async with chat_process(store_address, "--gate", str(gate)) as person:
        await person.sees("He spoke to kings.")
        person.enter("thank you")
        await person.sees("You said: thank you")
        person.type(CTRL_D)
        assert await person.ended() == 0
        assert person.text.count("He spoke to kings.") == 1
        assert "kings.\n(possibly" not in person.text
    async with chat_process(store_address, "--gate", str(gate)) as person:
        await person.sees("Ready.")
        person.enter("again")
        await person.sees("You said: again")
        assert "kings" not in person.text
        assert "thank you" not in person.text
    assert await look(store_address) == ([], ["answered", "answered", "answered"])


async def test_a_terminal_beside_a_gateway_runs_no_turns(store_address: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with gateway(store_address, "--gate", str(gate)), chat_process(store_address) as person:
        person.enter("tell me a story")
        await person.sees("Once there was a herald.")
        gate.touch()
        await person.sees("He spoke to kings.")
        assert person.text.count("Once there was a herald.") == 1
        # The guide of the chat's process would answer differently.
        assert SETUP[:20] not in person.text
        person.type(CTRL_D)
        assert await person.ended() == 0
    assert await look(store_address) == ([], ["answered"])


async def test_messages_from_elsewhere_are_shown_with_the_sender(store_address: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    database = open_database(store_address)
    try:
        async with chat_process(store_address, "--gate", str(gate)) as person:
            person.enter("about Rome")
            await person.sees("You said: about Rome")
            joined = await say_elsewhere(database, "/attach about Rome")
            await person.sees("/attach about Rome")
            person.enter("tell me a story")
            await person.sees("Once there was a herald.")
            await say_elsewhere(database, "from the browser")
            await person.sees("from the browser")
            gate.touch()
            await person.sees("He spoke to kings.")
            await person.sees("You said: from the browser")
            assert person.text.count("He spoke to kings.") == 1
            title = await database.read(lambda tx: find_title(tx, joined.session_id))
            assert title == "about Rome"
    finally:
        await database.close()


async def test_two_terminals_show_the_same_messages_once_each(store_address: str, tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    async with (
        chat_process(store_address, "--gate", gate) as first,
        chat_process(store_address, "--gate", gate) as second,
    ):
        await first.sees("Ready.")
        await second.sees("Ready.")
        first.enter("hello there")
        await first.sees("You said: hello there")
        await second.sees("You said: hello there")
        second.enter("and from me")
        await first.sees("You said: and from me")
        await second.sees("You said: and from me")
        await first.sees("another terminal: and from me")
        for person in (first, second):
            person.type(CTRL_D)
            assert await person.ended() == 0
            assert person.text.count("You said: hello there") == 1
            assert person.text.count("You said: and from me") == 1
    assert await look(store_address) == ([], ["answered", "answered"])


async def test_deliveries_without_an_open_terminal_are_shown_at_the_next_start(
    store_address: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with chat_process(store_address, "--gate", str(gate)) as person:
        await person.sees("Ready.")
        person.enter("tell me a story")
        await person.sees("Once there was a herald.")
        person.type(CTRL_D)
        await person.sees("answered at the next start")
        assert await person.ended() == 0
    gate.touch()
    async with gateway(store_address, "--gate", str(gate)):
        database = open_database(store_address)
        try:
            since = -1
            while await database.read(_fates) != ["answered"]:
                await database.changed(since=since, timeout_seconds=1)
                since = database.change_no
        finally:
            await database.close()
    async with chat_process(store_address, "--gate", str(gate)) as person:
        await person.sees("He spoke to kings.")
        await person.sees("Ready.")
        person.type(CTRL_D)
        assert await person.ended() == 0
    async with chat_process(store_address, "--gate", str(gate)) as person:
        await person.sees("Ready.")
        person.enter("so?")
        await person.sees("You said: so?")
        assert "kings" not in person.text


async def test_the_prompt_has_lines_history_and_completion(tmp_path: Path) -> None:
    store, history = str(tmp_path / "keryx.db"), tmp_path / "data" / "history"
    arguments = (store, "--gate", str(tmp_path / "gate"), "--history", str(history))
    async with chat_process(*arguments, NO_COLOR="1") as person:
        await person.sees("Ready.")
        person.type(f"one{ALT_ENTER}two\\\rthree\r")
        await person.sees("You said: one")
        await person.sees("three", times=2)
        person.type("/stat")
        await person.sees("Show the state of this conversation.")
        person.type(CTRL_C + "/")
        await person.sees("Start a fresh conversation here.")
        person.type(CTRL_C)
        person.enter("after it")
        await person.sees("You said: after it")
        person.type(CTRL_D)
        assert await person.ended() == 0
    async with chat_process(*arguments) as person:
        await person.sees("Ready.")
        person.type("\x1b[A\r")
        await person.sees("You said: after it")
    assert "+after it" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


async def test_without_a_terminal_every_line_is_a_message_and_output_is_plain(
    store_address: str, tmp_path: Path
) -> None:
    code, out, err = await run(
        "chat", store_address, "--gate", str(tmp_path / "gate"), given="hello\n\n/help title\nfail now\nbye\n"
    )
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert "You said: hello\n" in out
    assert "/title [text]: Show or set this conversation's title.\n" in out
    assert "I could not answer: there is no more paper\n" in out
    assert "You said: bye\n" in out


async def test_blank_lines_of_an_answer_are_kept_without_a_terminal(store_address: str) -> None:
    code, out, err = await run("chat", store_address, given="hello\n")
    assert (code, err) == (0, "")
    # The welcome may appear between them.
    assert f"{SETUP}\n\n" in out
    assert f"{ABILITIES}\n\n" in out


async def test_a_script_gets_only_the_answer(store_address: str, tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    assert await run("print", store_address, "hello", "--gate", gate) == (0, "You said: hello\n", "")
    code, out, err = await run("print", store_address, "fail", "--gate", gate)
    assert (code, out) == (1, "")
    assert "there is no more paper" in err
    code, out, _ = await run("print", store_address, "/help title", "--gate", gate)
    assert (code, out) == (0, "/title [text]: Show or set this conversation's title.\n")
    code, out, err = await run("print", store_address, "remember that I like tea")
    assert (code, out) == (3, "")
    assert "I like tea" in err
    assert (await look(store_address))[0] == []


async def test_a_script_resumes_a_conversation_without_moving_the_chat(
    store_address: str, tmp_path: Path
) -> None:
    gate = str(tmp_path / "gate")
    async with chat_process(store_address, "--gate", gate) as person:
        person.enter("about Rome")
        await person.sees("You said: about Rome")
        told = await run("print", store_address, "and Ostia", "--gate", gate, "--resume", "about Rome")
        assert told == (0, "You said: and Ostia\n", "")
        await person.sees("CLI terminal: and Ostia")
        await person.sees("You said: and Ostia")
        code, out, err = await run("print", store_address, "x", "--gate", gate, "--resume", "nowhere")
        assert (code, out) == (1, "")
        assert "no conversation called 'nowhere'" in err
        person.enter("go on")
        await person.sees("You said: go on")
    broken, _ = await look(store_address)
    assert broken == []


async def test_a_running_gateway_answers_a_script(store_address: str, tmp_path: Path) -> None:
    async with gateway(store_address, "--gate", str(tmp_path / "gate")):
        assert await run("print", store_address, "hello") == (0, "You said: hello\n", "")
