"""Approvals through the real gateway on both databases: single and standing approvals, across restarts."""

import pytest

from keryx.agents.agent import Answer, Brief, Stage
from keryx.clock import SECOND
from keryx.core.approvals.views import list_rules
from keryx.core.conversations.rules.message import Message, NewMessage, ToolCallPart, ToolResultPart
from keryx.core.people.rules.toolset import STATE
from keryx.core.turns.views.overview import show_overview
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.store.database import Database
from keryx.testing.platform import FakePlatform
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import ToolCall
from tests.flow.running import Actor, running, said, until


class Shell(BaseTool):
    """A tool that logs its commands; a standing approval covers all commands of the same program."""

    name = "shell"
    description = "Runs it."
    effect: StepEffect = "ask"
    toolset = STATE
    parameters = {"command": Parameter(required=True)}  # noqa: RUF012

    def __init__(self) -> None:
        self.ran: list[str] = []

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:  # noqa: ARG002
        self.ran.append(given.text("command"))
        return f"ran {given.text('command')}"

    def question(self, call: ToolCall) -> str:
        if call.arguments.get("command") == "crash":
            raise ZeroDivisionError
        return f"May I run {self.arguments(call).text('command')}?"

    def pattern(self, call: ToolCall) -> str | None:
        # Naive on purpose: Keryx uses the pattern only if it is true.
        return f"{self.arguments(call).text('command').partition(' ')[0]} *"


async def obey(brief: Brief, stage: Stage) -> Answer:
    """Run every line of the last message, all at once, and answer with the results."""
    done = [
        part
        for message in brief.messages[_last_asked(brief) + 1 :]
        if isinstance(message, Message)
        for part in message.parts
        if isinstance(part, ToolResultPart)
    ]
    if not done:
        asked = brief.messages[_last_asked(brief)]
        assert isinstance(asked, Message)
        calls = tuple(
            ToolCallPart(call_id=f"{brief.turn_id}-{number}", name="shell", arguments=_arguments(line))
            for number, line in enumerate(asked.text.splitlines())
        )
        done = list((await stage.act(NewMessage(role="assistant", parts=calls))).results)
    in_order = sorted(done, key=lambda part: part.call_id)
    return said(" / ".join(str(part.output) for part in in_order))


def _last_asked(brief: Brief) -> int:
    return max(
        number
        for number, message in enumerate(brief.messages)
        if isinstance(message, Message) and message.role == "user"
    )


def _arguments(line: str) -> dict[str, JsonValue]:
    return {} if line == "nothing" else {"command": line}


class Play:
    """A platform, and a gateway that can be restarted."""

    def __init__(self, store: Database, platform: FakePlatform) -> None:
        self.store = store
        self.platform = platform
        self.shell = Shell()

    async def say(
        self, text: str, *answers: str, chat: str = "1", user: str = "ana", group: bool = False
    ) -> None:
        """Send a message to a new gateway, wait until all these texts are shown, and stop it."""
        before = len(self.platform.said_to(chat))
        async with running(self.store, self.platform, Actor(obey), tools=[self.shell]) as gateway:
            self.platform.say(text, chat=chat, user=user, chat_type="group" if group else "dm")
            await until(
                lambda: (
                    len(self.platform.said_to(chat)) >= before + len(answers) and not gateway.turns_running
                )
            )
        new = self.platform.said_to(chat)[before:]
        assert len(new) == len(answers), new
        for answer in answers:
            assert any(answer in text for text in new), (answer, new)


@pytest.fixture
async def play(store: Database, platform: FakePlatform) -> Play:
    return Play(store, platform)


async def test_a_single_approval_survives_restarts_and_counts_once(play: Play) -> None:
    await play.say("git status", "May I run git status?")
    await play.say("/approve", "Allowed.", "ran git status")
    await play.say("git status", "/approve always: yes, from now on everywhere (shell: git *)")
    await play.say("/deny", "Refused.", "did not allow it")
    assert play.shell.ran == ["git status"]


async def test_a_standing_approval_holds_after_a_restart_and_in_other_chats(play: Play) -> None:
    await play.say("git status", "May I run git status?")
    await play.say("/approve always", "from now on everywhere: shell: git *.", "ran git status")
    await play.say("git log -3", "ran git log -3")
    await play.say("git push", "ran git push", chat="2")
    await play.say("git log; rm -rf /", "May I run git log; rm -rf /?")
    await play.say("/approve always", "approved only once")
    await play.say("/deny", "Refused.", "did not allow it")
    await play.say("ls", "May I run ls?")
    await play.say("/deny", "Refused.", "did not allow it")
    await play.say("git push", "May I run git push?", chat="3", user="ben")
    assert play.shell.ran == ["git status", "git log -3", "git push"]
    assert await play.store.read(check_invariants) == []


async def test_an_approval_for_a_session_holds_only_there_and_can_be_listed_and_removed(play: Play) -> None:
    await play.say("git status", "(shell: git *)")
    await play.say("/approve session", "from now on in this conversation: shell: git *.", "ran git status")
    await play.say("git log", "ran git log")
    await play.say("git log", "May I run git log?", chat="2")
    await play.say("/deny", "Refused.", "did not allow it", chat="2")
    await play.say("/approve rules", "1. shell: git *, in 'git status'; allowed less than a minute ago")
    await play.say("/approve rules", "Others read this chat", chat="family", group=True)
    await play.say("/approve forget 7", "You have no rule 7.")
    await play.say("/approve forget", "/approve forget <number>")
    await play.say("/approve forget 1", "Rule 1 is forgotten: I ask you again.")
    await play.say("/approve rules", "You have no standing approvals")
    await play.say("git log", "May I run git log?")
    assert play.shell.ran == ["git status", "git log"]


async def test_one_standing_approval_covers_all_its_waiting_calls(play: Play) -> None:
    await play.say("git status\ngit log\nls", "May I run git status?")
    await play.say("/approve session", "in this conversation", "May I run ls?")
    assert sorted(play.shell.ran) == ["git log", "git status"]
    await play.say("/approve", "Allowed.", "ran git status / ran git log / ran ls")


async def test_in_a_group_only_the_asked_person_can_answer(play: Play) -> None:
    await play.say("git status", "May I run git status?", chat="family", group=True)
    [asked] = (await play.store.read(lambda tx: show_overview(tx, person_id=1))).approvals
    await play.say("/approve", "Nothing waits for your answer here.", chat="family", user="ben", group=True)
    await play.say(f"/approve {asked.id} always", "was not put to you", chat="family", user="ben", group=True)
    await play.say("git log", "May I run git log?", chat="3", user="ben")
    assert play.shell.ran == []
    await play.say(
        "/approve always", "everywhere: what the question said.", "ran git status", chat="family", group=True
    )


async def test_an_expired_question_and_a_late_answer_get_a_notice(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keryx.core.turns.transactions.record_step.APPROVAL_LIFETIME", SECOND)
    monkeypatch.setattr("keryx.gateway.gateway.EXPIRE_SECONDS", 0.05)
    await play.say(
        "git status", "May I run", "so it was not done: May I run git status?", "did not answer in time"
    )
    await play.say("/approve", "Nothing waits for your answer here.")
    await play.say("/approve 1 always", "That question has expired; the agent was told so.")
    assert play.shell.ran == []
    assert await play.store.read(lambda tx: list_rules(tx, 1, limit=9)) == []


async def test_a_call_whose_question_fails_gets_an_error_as_its_result(play: Play) -> None:
    await play.say("nothing\ncrash", "Give 'command': a text. / The tool failed; the log says why.")
    assert play.shell.ran == []
