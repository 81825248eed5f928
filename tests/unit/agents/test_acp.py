"""The ACP agent on a stage: what the program is told, what goes wrong with it, and what it is let go of."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from keryx.agents.acp.agent import AcpAgent
from keryx.agents.acp.contract import ToolReports
from keryx.agents.acp.history import find_permission, find_position, mark_of, split_at_answer
from keryx.agents.acp.steps import UNKNOWN, PermissionTool, ReportedTool
from keryx.agents.agent import Answer, Brief, StepDone
from keryx.clock import SECOND
from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import (
    MediaPart,
    Message,
    NewMessage,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    text_message,
    text_of,
)
from keryx.core.turns.rules.program_calls import PERMISSION
from keryx.errors import AgentFailed, ToolFailed
from keryx.subprocesses.start_program import ERRORS_BYTES_MAX, ProgramSettings, open_errors
from keryx.tools.tool import ToolCall
from tests.unit.agents.stage import Noted, brief, message

PROGRAM = Path(__file__).parents[2] / "flow" / "programs" / "acp_by_hand.py"
BLOB = "a" * 64


class Room:
    """An agent on the program by hand, and the book the program keeps."""

    def __init__(
        self, folder: Path, *options: str, cancel_seconds: float = 10, sessions_max: int = 100
    ) -> None:
        self._book = folder / "book"
        self.settings = ProgramSettings(
            command=(sys.executable, "-S", str(PROGRAM), str(self._book), *options),
            folder=folder,
            cancel_seconds=cancel_seconds,
        )
        self.agent = AcpAgent(
            self.settings,
            errors=folder / "agent.log",
            reports=ToolReports(),
            read_media=self._read,
            sessions_max=sessions_max,
        )

    async def _read(self, hashes: Sequence[str]) -> Mapping[str, bytes]:
        return {each: b"image" for each in hashes if each == BLOB}

    async def ask(self, *messages: Message | Cover, stage: Noted | None = None) -> NewMessage:
        async with asyncio.timeout(60):
            answer = await self.agent.run(brief(*messages), stage or Noted())
        assert answer.message is not None
        return answer.message

    def noted(self, what: str) -> list[str]:
        entries = map(json.loads, self._book.read_text(encoding="utf-8").splitlines())
        return [str(entry[what]) for entry in entries if what in entry]

    async def until_noted(self, what: str) -> None:
        async with asyncio.timeout(60):
            while not self._book.exists() or not self.noted(what):  # noqa: ASYNC110 - another program's file
                await asyncio.sleep(0.01)


@asynccontextmanager
async def room_of(folder: Path, *options: str, **how: Any) -> AsyncIterator[Room]:
    room = Room(folder, *options, **how)
    try:
        yield room
    finally:
        await room.agent.close()


def says(seq: int, text: str) -> Message:
    return message(seq, "user", TextPart(text=text))


def kept(seq: int, answer: NewMessage) -> Message:
    return message(seq, "assistant", *answer.parts)


async def test_a_known_conversation_continues_with_the_new_messages_only(tmp_path: Path) -> None:
    async with room_of(tmp_path) as room:
        first = await room.ask(says(1, "one"))
        past = (says(1, "one"), kept(2, first))
        await room.ask(*past, says(3, "two"), says(4, "three"))
    assert room.noted("prompt")[1] == "two\n\nthree"
    assert (text_of(first.parts), first.finish_reason) == ("heard: one", "stop")


async def test_images_are_sent_and_other_attachments_named(tmp_path: Path) -> None:
    image = MediaPart(media_type="image/png", blob=BLOB, name="a.png")
    lost = MediaPart(media_type="image/png", blob="b" * 64)
    sound = MediaPart(media_type="audio/ogg", blob=BLOB)
    async with room_of(tmp_path) as room:
        await room.ask(message(1, "user", TextPart(text="look"), image, lost, sound))
    assert room.noted("prompt")[0].endswith("look\n[a.png]\n[image/png]\n[audio/ogg]\n[image]")


async def test_a_new_session_of_the_program_gets_the_whole_conversation(tmp_path: Path) -> None:
    cover = Cover(
        session_id="s",
        no=1,
        branch_no=0,
        first_seq=1,
        last_seq=2,
        summary="Greetings.",
        tokens_before=9,
        tokens_after=3,
        created_at=0,
    )
    call = ToolCallPart(call_id="x", name="look", arguments={"at": 1})
    past = (
        cover,
        message(3, "assistant", call),
        message(4, "tool", ToolResultPart(call_id="x", name="look", output="seen")),
    )
    async with room_of(tmp_path) as room:
        await room.ask(*past, says(5, "and?"))
    told = room.noted("prompt")[0]
    assert "[summary of earlier messages] Greetings." in told
    assert "[called look: {'at': 1}]" in told
    assert told.endswith("# The new messages\n\nand?")


async def test_a_turn_interrupted_after_a_step_asks_the_program_to_continue(tmp_path: Path) -> None:
    call = ToolCallPart(call_id="x", name="acp_read", arguments={"title": "read it"})
    done = (
        says(1, "one"),
        message(2, "assistant", call),
        message(3, "tool", ToolResultPart(call_id="x", name="acp_read", output="seen")),
    )
    async with room_of(tmp_path) as room:
        await room.ask(*done)
    assert room.noted("prompt")[0].endswith("do nothing twice.")


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ("refuse", "the agent refused to answer this."),
        ("fail", "could not answer: no paper"),
        ("sign in", "wants you to sign in first"),
    ],
)
async def test_a_refusal_of_the_program_becomes_a_readable_error(
    tmp_path: Path, wish: str, reason: str
) -> None:
    async with room_of(tmp_path) as room:
        with pytest.raises(AgentFailed, match=reason) as failed:
            await room.ask(says(1, wish))
    assert failed.value.retry_after is None


async def test_a_turn_is_retried_if_the_program_dies_before_its_first_tool(tmp_path: Path) -> None:
    async with room_of(tmp_path, "load") as room:
        first = await room.ask(says(1, "one"))
        past = (says(1, "one"), kept(2, first), says(3, "die"))
        with pytest.raises(AgentFailed, match="ended in the middle") as failed:
            await room.ask(*past)
        assert failed.value.retry_after == SECOND
        with pytest.raises(AgentFailed):
            await room.ask(*past)
    # Its conversation was taken up again, and the same was said in it.
    assert room.noted("load") == room.noted("new")
    assert [said.rpartition("\n")[2] for said in room.noted("prompt")] == ["one", "die", "die"]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise SystemExit(1)", "ended instead of answering"),
        ("input(); input(); input()", "did not answer in time"),
    ],
)
async def test_a_program_that_is_not_an_acp_agent_is_reported(
    tmp_path: Path, program: str, reason: str
) -> None:
    settings = ProgramSettings(
        command=(sys.executable, "-S", "-c", program), folder=tmp_path, start_seconds=0.5
    )
    agent = AcpAgent(settings, errors=tmp_path / "log", reports=ToolReports())
    await agent.warm_up()
    with pytest.raises(AgentFailed, match=reason):
        await agent.run(brief(), Noted())
    await agent.close()


async def test_a_session_whose_prompt_does_not_end_is_not_used_again(
    tmp_path: Path,
) -> None:
    async with room_of(tmp_path, cancel_seconds=0) as room:
        first = await room.ask(says(1, "one"))
        past = (says(1, "one"), kept(2, first))
        hanging = asyncio.create_task(room.ask(*past, says(3, "hang")))
        await room.until_noted("hangs")
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        await room.ask(*past, says(3, "hang"), says(4, "four"))
    assert len(room.noted("new")) == 2


async def test_only_the_newest_sessions_are_kept(
    tmp_path: Path,
) -> None:
    async with room_of(tmp_path, sessions_max=1) as room:
        first = await room.ask(says(1, "one"))
        other = Brief(**{name: getattr(brief(), name) for name in Brief.__slots__} | {"session_id": "t"})
        await room.agent.run(other, Noted())
        await room.ask(says(1, "one"), kept(2, first), says(3, "two"))
    assert len(room.noted("new")) == 3


async def test_messages_that_arrive_meanwhile_are_sent_after_the_prompt(tmp_path: Path) -> None:
    stage = Noted(joined=(text_message("user", "and the other?"),))
    async with room_of(tmp_path) as room:
        answer = await room.ask(says(1, "use"), stage=stage)
    assert room.noted("prompt")[1] == "and the other?"
    assert text_of(answer.parts) == "It has three.\n\nheard: and the other?"


class Deciding(Noted):
    """A stage on which questions are decided at once, as where a person allowed it for good."""

    is_allowed = True

    async def act(self, step: NewMessage) -> StepDone:
        done = await super().act(step)
        results = tuple(
            ToolResultPart(call_id=each.call_id, name=each.name, output="", is_error=not self.is_allowed)
            for each in done.results
        )
        return StepDone(results=results)


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_a_permission_decided_at_once_does_not_end_the_turn(
    tmp_path: Path, *, is_allowed: bool
) -> None:
    stage = Deciding()
    stage.is_allowed = is_allowed
    async with room_of(tmp_path) as room:
        answer = await room.ask(says(1, "may you"), stage=stage)
    assert text_of(answer.parts) == ("It is gone." if is_allowed else "It stays.")
    assert [part.name for step in stage.steps for part in step.parts if isinstance(part, ToolCallPart)] == [
        PERMISSION,
        "acp_delete",
    ]
    assert [used.partition(":")[0] for used in stage.used] == ["acp_delete"]


class Waiting(Exception):
    """What a stage raises where the turn waits."""


class WaitingStage(Noted):
    async def act(self, step: NewMessage) -> StepDone:
        self.steps.append(step)
        raise Waiting


async def test_a_program_that_stopped_waiting_gets_the_decision_as_text(tmp_path: Path) -> None:
    stage = WaitingStage()
    async with room_of(tmp_path) as room:
        with pytest.raises(Waiting):
            await room.ask(says(1, "may you"), stage=stage)
        (step,) = stage.steps
        call = step.parts[-1]
        assert isinstance(call, ToolCallPart)
        refused = ToolResultPart(call_id=call.call_id, name=PERMISSION, output="no", is_error=True)
        past = (says(1, "may you"), message(2, "assistant", *step.parts), message(3, "tool", refused))
        answer = await room.ask(*past, says(4, "leave it"))
    assert room.noted("chosen") == ["cancelled"]
    last = room.noted("prompt")[-1]
    assert "You may not. Go on without it.\n\nleave it" in last
    assert text_of(answer.parts) == "heard: leave it"


async def test_a_turn_that_answers_nobody_starts_nothing(tmp_path: Path) -> None:
    async with room_of(tmp_path) as room:
        answer = await room.agent.run(brief(purpose="flush"), Noted())
        assert answer == Answer(message=None, silent=True)
    assert not (tmp_path / "book").exists()


def test_marks_of_other_programs_are_ignored() -> None:
    torn = ThinkingPart(text="", signature="{")
    other = mark_of("another program", "theirs")
    ours = mark_of("ours", "mine")
    elsewhere = message(3, "user", TextPart(text="x"))._replace(branch_no=1)
    assert find_position([message(1, "assistant", torn, other)], program="ours") is None
    assert find_position([message(1, "assistant", torn, ours), elsewhere], program="ours") is None
    found = find_position([message(1, "assistant", torn, ours), says(2, "x")], program="ours")
    assert found is not None
    assert (found.session, found.seq, len(found.since)) == ("mine", 1, 1)
    assert split_at_answer([says(1, "x")]) == ((), [says(1, "x")])


def test_a_result_without_its_permission_request_is_ignored() -> None:
    stray = message(1, "tool", ToolResultPart(call_id="x", name=PERMISSION, output="allowed"))
    other = message(2, "assistant", ToolCallPart(call_id="y", name=PERMISSION, arguments={}))
    assert find_permission([other, stray], [stray]) is None


def use_of(**arguments: Any) -> ToolCall:
    return ToolCall(arguments=arguments, session_id="s", person_id=1, audience_id=None, key="k")


async def test_after_a_crash_the_result_of_a_reported_tool_is_unknown() -> None:
    tool = ReportedTool("execute", ToolReports())
    with pytest.raises(ToolFailed, match="the result is unknown"):
        await tool.run(use_of())
    assert (tool.offer.effect, tool.offer.description) == ("once", "Done by the agent itself.")
    assert UNKNOWN.endswith("the result is unknown.")
    question = PermissionTool().question(use_of(title="delete it"))
    assert question == "The agent wants to do this: delete it\nMay it?"


def test_an_error_log_that_is_too_large_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (ERRORS_BYTES_MAX + 1))
    with open_errors(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
