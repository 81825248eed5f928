"""Questions of the agent at the terminal: a letter answers, at once, after a restart and after ``--print``."""

from collections.abc import AsyncIterator

import pytest

from keryx.agents.model.guide import Guide
from keryx.cli.chat.print_answer import NEEDS_PERSON, print_answer
from keryx.core.approvals.rules.approval import ASK_USER, ApprovalId
from keryx.core.turns.views.terminal import OpenQuestion
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.platforms.terminal.question import answer_for, ask_again, offer
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.tools.keryx.plugin import keryx_tools
from keryx.tools.tool import Toolbox
from tests.cli.runner import make_runtime
from tests.cli.test_chat_here import running_chat

OFFERED = "y once, s in this conversation, a always, n no"
QUESTION = OpenQuestion(ApprovalId(7), "May I?", "terminal", "git *", 0)


@pytest.fixture
async def store(store_address: str) -> AsyncIterator[Database]:
    database = open_database(store_address)
    yield database
    assert await database.read(check_invariants) == []
    await database.close()


async def test_a_letter_answers_and_always_approves_the_next_call(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_chat(make_runtime(store), Guide(), monkeypatch) as at:
        await at.person.sees("Somebody answers here.")
        at.person.enter("remember that I like tea")
        await at.person.sees("May I keep this note for later? 'I like tea'")
        await at.person.sees(OFFERED)
        at.person.enter("n")
        await at.person.sees("Refused.")
        await at.person.sees("did not allow it")
        at.person.enter("remember that I like milk")
        await at.person.sees("This is question 2.")
        await at.person.sees(OFFERED)
        at.person.enter("S")
        await at.person.sees("from now on in this conversation: every use of remember.")
        await at.person.sees("Kept.")
        at.person.enter("remember that I like figs")
        await at.person.sees("Kept.", times=2)
        # Without an open question, a letter is an ordinary message.
        at.person.enter("y")
        await at.person.sees("No model answers here")
        at.person.enter("/memory")
        await at.person.sees("I like figs", times=2)
        await at.leave()
        assert at.person.text.count("May I keep this note for later?") == 2


async def test_an_earlier_question_is_shown_again_and_can_be_answered(
    store: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toolbox = Toolbox(keryx_tools(store))
    assert (
        await print_answer(make_runtime(store), Guide(), toolbox, "remember that I like tea") == NEEDS_PERSON
    )
    session_id = capsys.readouterr().err.split()[-1]
    async with running_chat(make_runtime(store), Guide(), monkeypatch, resume=session_id) as at:
        await at.person.sees("May I keep this note for later? 'I like tea'")
        await at.person.sees(OFFERED)
        await at.leave()
    async with running_chat(make_runtime(store), Guide(), monkeypatch) as at:
        await at.person.sees("May I keep this note for later? 'I like tea'")
        await at.person.sees("/approve always: yes, from now on everywhere (every use of remember)")
        await at.person.sees("This is question 1. Without an answer by ")
        await at.person.sees(f"Waiting for your approval: {OFFERED}")
        at.person.enter("what is it for?")
        await at.person.sees(f"Answer first: {OFFERED} · 1 waiting")
        at.person.enter("a")
        await at.person.sees("from now on everywhere: every use of remember.")
        await at.person.sees("Kept.")
        await at.leave()
    toolbox = Toolbox(keryx_tools(store))
    assert await print_answer(make_runtime(store), Guide(), toolbox, "remember that I like figs") == 0
    assert capsys.readouterr().out == "Kept.\n"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("y", "/approve 7"),
        (" Yes ", "/approve 7"),
        ("s", "/approve 7 session"),
        ("a", "/approve 7 always"),
        ("n", "/deny 7"),
        ("no", "/deny 7"),
        ("yes, but {why}?", "yes, but {why}?"),
    ],
)
def test_a_letter_answers_the_question_on_the_screen(typed: str, said: str) -> None:
    assert answer_for(typed, QUESTION) == said
    assert answer_for(typed, None) == typed
    assert answer_for(typed, QUESTION._replace(tool=ASK_USER)) == typed


def test_the_status_line_offers_only_possible_answers() -> None:
    assert offer(QUESTION) == "Waiting for your approval: y once, s in this conversation, a always, n no"
    assert offer(QUESTION, queued=2) == "Answer first: y once, s in this conversation, a always, n no"
    assert len(f" {offer(QUESTION)}") <= len(f" {offer(QUESTION, queued=2)} · 99 waiting") <= 80
    assert offer(QUESTION._replace(covers=None)) == "Waiting for your approval: y once, n no"
    assert offer(QUESTION._replace(tool=ASK_USER)) == "Waiting for your answer"
    assert ask_again(QUESTION._replace(tool=ASK_USER), zone="UTC").startswith("May I?\n(Question 7 waits")
    assert offer(None) == "Waiting for another person's answer"
